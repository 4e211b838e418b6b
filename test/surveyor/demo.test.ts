import { readdirSync } from 'node:fs';
import { afterAll, describe, expect, test } from '@jest/globals';
import { waitFor } from '../support/wait-for.ts';
import { DemoProcess } from './demo-process.ts';
import { makeFolder, removeFolders } from './folders.ts';

afterAll(removeFolders);

const minute = 60_000;

/** The lines of a text that hold these, in this order. */
function expectInOrder(text: string, parts: string[]): void {
  let from = 0;
  for (const part of parts) {
    const found = text.indexOf(part, from);
    if (found === -1) throw new Error(`"${part}" is not in what follows:\n${text.slice(from)}`);
    from = found + part.length;
  }
}

describe('the demo', () => {
  test(
    'tells the whole story within two minutes, with exit code 0, and leaves nothing',
    async () => {
      const began = Date.now();
      const demo = new DemoProcess();
      await demo.exited;
      expect({ code: demo.child.exitCode, errors: demo.errors }).toEqual({ code: 0, errors: '' });
      expect(Date.now() - began).toBeLessThan(2 * minute);
      expectInOrder(demo.output, [
        'is ready, model offline/surveyor: no API key is set, so an offline model decides from the real tool results',
        'run started',
        'user Survey this folder',
        '→ bash # files, lines and bytes, by type and by folder',
        '· bash: weighing package',
        'kill -9 of the worker, in the middle of bash.',
        'A steering message is sent meanwhile.',
        'A new worker: worker ',
        '? bash Interrupted, outcome unknown',
        'bash was not started a second time: the model is told that its outcome is unknown.',
        'user (steer) Focus on the tests: add a section about them.',
        'The outcome of bash is unknown: its worker died.',
        '→ write ',
        '← write Wrote report.md',
        'user (followUp) What are the three largest files?',
        'The three largest files are:',
        'run done',
        'The report',
        '## Files by type',
        '## Tests',
        'cut off by the death of a worker and run again.',
        'What was durable',
      ]);
      const table = demo.output.slice(demo.output.indexOf('What was durable'));
      const activities = /activities +(\d+) in (\d+) attempts/.exec(table);
      expect(Number(activities?.[2])).toBeGreaterThan(Number(activities?.[1]));
      expect(table).toMatch(/turns +\d+\n/);
      expect(table).toMatch(/tokens +[\d,]+ in, [\d,]+ out\n/);
      expect(table).toMatch(/cost +\$0\.0000\n/);
      expect(table).toMatch(/history +[\d,]+ events, [\d,]+ bytes\n/);
      // Not a terminal, so nothing for one.
      expect(demo.output).not.toContain('\u001b');
      expect(demo.leftovers()).toEqual([]);
      expect(readdirSync(demo.temporaryFolder)).toEqual([]);
    },
    3 * minute,
  );

  test(
    'Ctrl-C in the middle of a tool ends everything that it has started',
    async () => {
      const demo = new DemoProcess();
      await demo.shows('· bash: weighing package');
      demo.child.kill('SIGINT');
      await demo.exited;
      expect({ code: demo.child.exitCode, errors: demo.errors.trim() }).toEqual({
        code: 1,
        errors: 'The demo failed: Stopped by SIGINT.',
      });
      expect(demo.leftovers()).toEqual([]);
      expect(readdirSync(demo.temporaryFolder)).toEqual([]);
    },
    2 * minute,
  );

  test(
    'kill -9 of the demo itself leaves no process behind',
    async () => {
      const demo = new DemoProcess();
      await demo.shows('· bash: weighing package');
      demo.child.kill('SIGKILL');
      await demo.exited;
      await waitFor(() => demo.leftovers().length === 0, { what: 'the end of what the demo had started' });
    },
    2 * minute,
  );

  test(
    'a folder that is not there is one clear line and exit code 1',
    async () => {
      const missing = `${makeFolder()}/none`;
      const demo = new DemoProcess({ SURVEYOR_WORKSPACE: missing });
      await demo.exited;
      expect(demo.child.exitCode).toBe(1);
      expect(demo.errors.trim().split('\n')).toEqual([
        `The demo failed: The worker stopped before it was ready. The surveyor's worker stopped: The workspace "${missing}" is not a folder.`,
      ]);
      expect(demo.leftovers()).toEqual([]);
      expect(readdirSync(demo.temporaryFolder)).toEqual([]);
    },
    minute,
  );
});
