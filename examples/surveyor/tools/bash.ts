import { defineTool, type Tool } from 'everturn';
import { z } from 'zod';
import type { Workspace } from '../workspace.ts';
import { BoundedOutput } from './bounded-output.ts';
import { type GroupEnd, runInGroup } from './process-group.ts';

const headBytes = 20_000;
const tailBytes = 10_000;
const progressMs = 200;

/** All that a command gets of this process's environment: no API key, no token, nothing of the worker's settings. */
const passedVariables = ['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'LANG', 'LC_ALL', 'LC_CTYPE', 'TZ', 'TMPDIR'];

const parameters = z.object({
  command: z.string().min(1).max(20_000).describe('Shell command.'),
  timeoutSeconds: z.number().int().min(1).max(600).default(60),
});

/**
 * Runs a shell command in the workspace. What a command does is its own affair, so it is never repeated by itself:
 * when a worker dies in it, the model is told that the outcome is unknown. It is not a sandbox: a command can read and
 * write what this user can. Run the worker in a container where that matters.
 */
export function bashTool(workspace: Workspace): Tool {
  return defineTool({
    name: 'bash',
    description:
      'Runs a shell command in the workspace folder. Standard output and error come back together, at most ' +
      `${(headBytes + tailBytes) / 1000} KB: the beginning and the end. Background processes end with the command.`,
    parameters,
    replay: 'never',
    timeoutMs: 660_000,
    // The command runs in processes of its own and never blocks this one, so silence soon means that it is gone.
    heartbeatTimeoutMs: 3_000,
    async execute({ command, timeoutSeconds }, context) {
      const output = new BoundedOutput(headBytes, tailBytes);
      const report = throttle(progressMs, () => {
        const last = output.end(500).trimEnd().split('\n').at(-1) ?? '';
        context.onUpdate({ content: [{ type: 'text', text: output.end(2_000) }], details: { bytes: output.total } });
        // Only a hint for the model after a crash: the command does not depend on it.
        context.progress({ outputBytes: output.total, lastLine: last.slice(0, 200) }).catch(() => undefined);
      });
      const end = await runInGroup(command, {
        cwd: workspace.root,
        env: cleanEnvironment(process.env),
        signal: context.signal,
        timeoutMs: timeoutSeconds * 1000,
        onOutput(chunk) {
          output.add(chunk);
          report();
        },
      });
      const text = [output.text().trimEnd(), explain(end, timeoutSeconds)].filter(Boolean).join('\n');
      // A throw after the signal, so that the call counts as aborted and not as failed.
      if (end.kind === 'aborted') throw new Error(text);
      return {
        content: [{ type: 'text', text: text || '(no output)' }],
        details: { ...end, bytes: output.total },
        isError: !(end.kind === 'exit' && end.code === 0),
      };
    },
  });
}

export function cleanEnvironment(env: NodeJS.ProcessEnv): Record<string, string> {
  const clean: Record<string, string> = {};
  for (const name of passedVariables) {
    const value = env[name];
    if (value !== undefined) clean[name] = value;
  }
  return clean;
}

function explain(end: GroupEnd, timeoutSeconds: number): string {
  switch (end.kind) {
    case 'exit':
      return end.code === 0 ? '' : `[exit code ${end.code}]`;
    case 'killed':
      return `[killed by ${end.signal}]`;
    case 'timeout':
      return `[timed out after ${timeoutSeconds} s; the command and all it had started were killed]`;
    case 'aborted':
      return '[aborted; the command and all it had started were killed]';
  }
}

/** Calls at once, then at most every `ms`; what comes between is left out. */
function throttle(ms: number, call: () => void): () => void {
  let last = Number.NEGATIVE_INFINITY;
  return () => {
    const now = performance.now();
    if (now - last < ms) return;
    last = now;
    call();
  };
}
