import { countCommand, largestCommand, topicCommand, weighCommand } from './commands.ts';
import type { Step } from './evidence.ts';
import type { Topic } from './requests.ts';

/** Every call that the offline model can make. Equal steps are one piece of evidence. */
export const reportPath = 'report.md';

export const lookStep: Step = { name: 'list', args: { path: '.' } };
export const countStep: Step = { name: 'bash', args: { command: countCommand } };
export const weighStep: Step = { name: 'bash', args: { command: weighCommand, timeoutSeconds: 120 } };

export const todoStep: Step = {
  name: 'search',
  args: { pattern: '\\b(TODO|FIXME|HACK|XXX)\\b', limit: 10 },
};
export const testCasesStep: Step = {
  name: 'search',
  args: {
    pattern: '^\\s*(?:(?:test|it)(?:\\.\\w+)*\\(|(?:async )?def test_|func Test[A-Z]|#\\[(?:tokio::)?test\\])',
    glob: '*.{ts,tsx,js,jsx,mjs,cjs,py,go,rs}',
    limit: 10,
  },
};
export const exportsStep: Step = {
  name: 'search',
  args: {
    pattern: '^export (?:default |abstract |async |declare |type )*(?:function|class|const|let|interface|type|enum)\\b',
    glob: '*.{ts,tsx,js,jsx,mjs}',
    limit: 1,
  },
};

export function listStep(path: string): Step {
  return { name: 'list', args: { path } };
}

export function readStep(path: string): Step {
  return { name: 'read', args: { path, limit: 400 } };
}

export function largestStep(count: number): Step {
  return { name: 'bash', args: { command: largestCommand(count) } };
}

export function topicFilesStep({ word }: Topic): Step {
  return { name: 'bash', args: { command: topicCommand(word) } };
}

/** Lines about a topic; for tests and docs, what they are made of. */
export function topicLinesStep({ word }: Topic): Step {
  if (word === 'tests') return testCasesStep;
  if (word === 'docs') return { name: 'search', args: { pattern: '^#{1,6} \\S', glob: '*.{md,mdx}', limit: 10 } };
  return { name: 'search', args: { pattern: word, ignoreCase: true, limit: 10 } };
}

export function writeStep(content: string): Step {
  return { name: 'write', args: { path: reportPath, content } };
}
