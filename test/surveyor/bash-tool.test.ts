import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, describe, expect, test } from '@jest/globals';
import type { AgentToolResult } from 'everturn';
import { waitFor } from '../support/wait-for.ts';
import { makeBench, removeFolders } from './folders.ts';
import { execute } from './local-loop.ts';

afterAll(removeFolders);

const toolPath = fileURLToPath(new URL('../../examples/surveyor/tools/process-group.ts', import.meta.url));

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  // Gone, but nobody has asked for its exit code yet: that is up to whoever inherited it.
  return execFileSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' }).trim()[0] !== 'Z';
}

const untilGone = (pid: number) => waitFor(() => !isAlive(pid), { what: `the end of process ${pid}` });

describe('bash', () => {
  test('runs in the workspace and gives both outputs in their order', async () => {
    const { workspace, tools } = makeBench();
    const { text, isError } = await execute(tools, 'bash', {
      command: 'pwd; sleep 0.1; echo err >&2; sleep 0.1; echo out',
    });
    expect({ text, isError }).toEqual({ text: `${workspace}\nerr\nout`, isError: false });
  });

  test('an exit code other than zero is an error with the output', async () => {
    const { tools } = makeBench();
    const result = await execute(tools, 'bash', { command: 'echo half; exit 3' });
    expect(result).toEqual({ text: 'half\n[exit code 3]', isError: true });
    expect(await execute(tools, 'bash', { command: 'true' })).toEqual({ text: '(no output)', isError: false });
    expect((await execute(tools, 'bash', { command: 'kill -9 $$' })).text).toBe('[killed by SIGKILL]');
  });

  test('reads no input, so a command that waits for some ends', async () => {
    const { tools } = makeBench();
    expect(await execute(tools, 'bash', { command: 'cat; echo end' })).toEqual({ text: 'end', isError: false });
  });

  test('a timeout kills grandchildren too', async () => {
    const { workspace, tools } = makeBench();
    const command = 'sh -c "sh -c \'echo \\$\\$ > pid; sleep 600\'"; true';
    const { text, isError } = await execute(tools, 'bash', { command, timeoutSeconds: 1 });
    expect(isError).toBe(true);
    expect(text).toBe('[timed out after 1 s; the command and all it had started were killed]');
    await untilGone(Number(readFileSync(join(workspace, 'pid'), 'utf8')));
  });

  test('an abort kills the group at once and keeps the output so far', async () => {
    const { workspace, tools } = makeBench();
    const abort = new AbortController();
    const { text, isError } = await execute(
      tools,
      'bash',
      { command: 'sleep 600 & echo $! > pid; echo started; wait' },
      { signal: abort.signal, onUpdate: () => abort.abort() },
    );
    expect({ text, isError }).toEqual({
      text: 'started\n[aborted; the command and all it had started were killed]',
      isError: true,
    });
    await untilGone(Number(readFileSync(join(workspace, 'pid'), 'utf8')));
  });

  test('a signal that fired before means that nothing is started', async () => {
    const { workspace, tools } = makeBench();
    await execute(tools, 'bash', { command: 'touch here' }, { signal: AbortSignal.abort() });
    expect(readdirSync(workspace)).toEqual([]);
  });

  test('a background process ends with its command and does not keep it waiting', async () => {
    const { workspace, tools } = makeBench();
    const { text, isError } = await execute(tools, 'bash', { command: 'sleep 600 & echo $! > pid; echo done' });
    expect({ text, isError }).toEqual({ text: 'done', isError: false });
    await untilGone(Number(readFileSync(join(workspace, 'pid'), 'utf8')));
  });

  test('long output keeps its beginning and its end', async () => {
    const { tools } = makeBench();
    const { text } = await execute(tools, 'bash', {
      command: 'echo first; head -c 5000000 /dev/zero | tr "\\0" x; echo; echo last',
    });
    expect(text.length).toBeLessThan(31_000);
    expect(text).toMatch(/^first\nx/);
    expect(text).toMatch(/\n\[… 4970012 bytes left out …\]\n/);
    expect(text).toMatch(/x\nlast$/);
  });

  test('shows live output and keeps a note for the case of a crash', async () => {
    const { tools } = makeBench();
    const updates: AgentToolResult[] = [];
    const notes: unknown[] = [];
    await execute(
      tools,
      'bash',
      { command: 'echo one; sleep 0.4; echo two' },
      { onUpdate: (partial) => updates.push(partial), progress: async (note) => void notes.push(note) },
    );
    expect(updates[0]?.content).toEqual([{ type: 'text', text: 'one\n' }]);
    expect(notes[0]).toEqual({ outputBytes: 4, lastLine: 'one' });
    expect(notes.at(-1)).toEqual({ outputBytes: 8, lastLine: 'two' });
  });
});

describe('the environment of a command', () => {
  const kept = { ...process.env };
  afterEach(() => {
    process.env = { ...kept };
  });

  test('has no API keys and nothing else of the worker beside the ordinary', async () => {
    process.env.ANTHROPIC_API_KEY = 'sk-secret-1';
    process.env.OPENAI_API_KEY = 'sk-secret-2';
    process.env.GITHUB_TOKEN = 'ghp-secret-3';
    process.env.EVERTURN_STORE = '/secret-4';
    const { text } = await execute(makeBench().tools, 'bash', {
      command: 'env; cat /proc/self/environ | tr "\\0" "\\n"',
    });
    expect(text).toContain('PATH=');
    expect(text).not.toContain('secret');
  });
});

test('a worker killed with kill -9 takes its running command along', async () => {
  const { workspace } = makeBench();
  const script = `
    import { runInGroup } from ${JSON.stringify(toolPath)};
    const options = { cwd: ${JSON.stringify(workspace)}, env: { PATH: process.env.PATH }, timeoutMs: 600000 };
    const onOutput = (chunk) => console.log(chunk.toString().trim());
    await runInGroup('sh -c "sleep 600 & echo \\\\$! ; wait"', { ...options, signal: new AbortController().signal, onOutput });
  `;
  const worker = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [chunk] = (await once(worker.stdout, 'data')) as [Buffer];
  const sleeper = Number(chunk.toString());
  expect(() => process.kill(sleeper, 0)).not.toThrow();
  worker.kill('SIGKILL');
  await untilGone(sleeper);
});
