import { parseRows } from './commands.ts';
import type { Evidence, Step } from './evidence.ts';
import { readCounts, readHits, readTestCases, readTodos } from './facts.ts';
import { count, joined, number, percent } from './format.ts';
import { keywordsOf } from './requests.ts';
import { countStep, largestStep, testCasesStep, todoStep, topicLinesStep } from './steps.ts';

/** How a question is answered: the calls that it needs, and the answer once they have been made. */
export interface AnswerPlan {
  steps: Step[];
  answer(evidence: Evidence): string;
}

const numerals = ['no', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten'];

export function planAnswer(question: string): AnswerPlan {
  if (/\b(largest|biggest|longest)\b/i.test(question) && /\bfiles?\b/i.test(question)) return largestFiles(question);
  if (/\b(todos?|fixmes?|open work)\b/i.test(question))
    return hits(todoStep, readTodos, 'line with TODO, FIXME, HACK or XXX', 'lines with TODO, FIXME, HACK or XXX');
  if (/\btests?\b/i.test(question)) return hits(testCasesStep, readTestCases, 'test case', 'test cases');
  if (/\b(languages?|types?|extensions?)\b/i.test(question)) return languages();
  if (
    /\b(how many|how much|how (big|large)|size|count)\b/i.test(question) &&
    /\b(files?|lines?|bytes?|it|folder|project)\b/i.test(question)
  )
    return size();
  return words(question);
}

function largestFiles(question: string): AnswerPlan {
  const step = largestStep(numberIn(question));
  return {
    steps: [step],
    answer(evidence) {
      const output = evidence.of(step);
      if (output === undefined) return `I could not find out: ${evidence.failureOf(step) ?? 'there is no bash tool'}`;
      const rows = parseRows(output, 'largest');
      if (rows.length === 0) return 'There are no files.';
      const head =
        rows.length === 1 ? 'The largest file is:' : `The ${numerals[rows.length] ?? rows.length} largest files are:`;
      return [
        head,
        ...rows.map(
          ([lines, bytes, path]) => `- ${path}: ${count(Number(bytes), 'byte')}, ${count(Number(lines), 'line')}`,
        ),
      ].join('\n');
    },
  };
}

function hits(
  step: Step,
  read: (evidence: Evidence) => ReturnType<typeof readHits>,
  one: string,
  many: string,
): AnswerPlan {
  return {
    steps: [step],
    answer(evidence) {
      const found = read(evidence);
      if (found === undefined) return `I could not find out: ${evidence.failureOf(step) ?? 'there is no search tool'}`;
      return `There ${found.lines === 1 ? 'is' : 'are'} ${count(found.lines, one, many)} in ${count(found.files, 'file')}.`;
    },
  };
}

function size(): AnswerPlan {
  return {
    steps: [countStep],
    answer(evidence) {
      const all = readCounts(evidence)?.all;
      if (all === undefined) return `I could not count: ${evidence.failureOf(countStep) ?? 'there is no bash tool'}`;
      return `There are ${count(all.files, 'file')} with ${count(all.lines, 'line')} and ${count(all.bytes, 'byte')}.`;
    },
  };
}

function languages(): AnswerPlan {
  return {
    steps: [countStep],
    answer(evidence) {
      const counts = readCounts(evidence);
      if (counts === undefined) return `I could not count: ${evidence.failureOf(countStep) ?? 'there is no bash tool'}`;
      const most = counts.types.slice(0, 5).map((type) => `${type.name} (${percent(type.lines, counts.all.lines)})`);
      return most.length === 0 ? 'There are no files.' : `By lines: ${joined(most)}.`;
    },
  };
}

/** Any other question: it is looked up by its most telling word. */
function words(question: string): AnswerPlan {
  const topic = keywordsOf(question)[0];
  if (topic === undefined) {
    return {
      steps: [],
      answer: () => 'I am the offline model: ask me about files, lines, tests or a word to look for.',
    };
  }
  const step = topicLinesStep(topic);
  return {
    steps: [step],
    answer(evidence) {
      const found = readHits(evidence.of(step));
      if (found === undefined) return `I could not look for "${topic.word}".`;
      if (found.lines === 0) return `Nothing in the folder mentions "${topic.word}".`;
      return [
        `${number(found.lines)} lines in ${count(found.files, 'file')} mention "${topic.word}", first of all:`,
        ...found.shown.slice(0, 5).map((line) => `- ${line}`),
      ].join('\n');
    },
  };
}

function numberIn(question: string): number {
  const digits = /\b\d{1,2}\b/.exec(question)?.[0];
  if (digits !== undefined) return Math.max(1, Math.min(20, Number(digits)));
  const words = question.toLowerCase().match(/[a-z]+/g) ?? [];
  const named = words.map((word) => numerals.indexOf(word)).find((index) => index > 0);
  return named ?? (/\bfiles\b/i.test(question) ? 3 : 1);
}
