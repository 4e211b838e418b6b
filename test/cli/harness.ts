import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openStore } from '../../src/store/index.ts';
import type { Store } from '../../src/store/types.ts';
import { waitFor } from '../support/wait-for.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const main = join(root, 'src/cli/main.ts');
const nodeFlags = ['--conditions=everturn-source', '--disable-warning=ExperimentalWarning'];

/**
 * The agents of the command line's tests. The model does what the last message says: "add" calls the tool, "call FILE"
 * calls one that waits for the file, "hold FILE" streams "Held" and waits for the file, "fail" fails, and anything else is
 * repeated. Files are relative to the project's folder.
 */
export const agentsSource = `
import { existsSync, writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { defineAgent, defineTool, textOf } from 'everturn';
import { scriptedModel } from 'everturn/testing';
import { z } from 'zod';

const add = defineTool({
  name: 'add',
  description: 'adds two numbers',
  parameters: z.object({ a: z.number(), b: z.number() }),
  replay: 'safe',
  execute: ({ a, b }: { a: number; b: number }) => String(a + b),
});
const wait = defineTool({
  name: 'wait',
  description: 'waits for a file',
  parameters: z.object({ file: z.string() }),
  replay: 'safe',
  execute: async ({ file }: { file: string }) => {
    writeFileSync(file + '.waiting', '');
    while (!existsSync(file)) await delay(10);
    return 'it came';
  },
});
const model = scriptedModel({
  models: ['other'],
  replies: ({ messages, model }) => {
    const last = messages.at(-1);
    const text = textOf(last ?? {});
    if (last?.role === 'toolResult') return { text: 'The tool says ' + text + '.' };
    if (text === 'add') return { text: 'Let me add.', calls: [{ name: 'add', args: { a: 1, b: 2 } }] };
    if (text === 'fail') return { error: 'invalid_request: no' };
    const [, what, file] = /^(call|hold) (.+)$/.exec(text) ?? [];
    if (what === 'call' && file) return { calls: [{ name: 'wait', args: { file } }] };
    if (what === 'hold' && file) return { text: 'Held words.', holdUntilFile: file, holdAfterChunks: 1 };
    const images = Array.isArray(last?.content) ? last.content.filter((block) => block.type === 'image').length : 0;
    return { text: 'You said: ' + text + (images > 0 ? ' with ' + images + ' images' : '') + (model.endsWith('other') ? ' (other)' : '') };
  },
});
export const helper = defineAgent({ name: 'helper', model: model.ref, tools: [add, wait], lingerMs: 2_000 });
export const second = defineAgent({ name: 'second', model: model.ref });
export const providers = [model];
`;

export interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** A process of the command line. */
export class CliProcess {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  stdout = '';
  stderr = '';

  constructor(child: ChildProcess) {
    this.child = child;
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.stdout += text;
    });
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.stderr += text;
    });
    const onExit = () => child.kill('SIGKILL');
    process.once('exit', onExit);
    this.ended = once(child, 'close').then(([code]) => {
      process.removeListener('exit', onExit);
      return { code: code as number | null, stdout: this.stdout, stderr: this.stderr };
    });
  }

  /** Waits until its output, both streams, has the text. */
  async until(text: string): Promise<void> {
    await waitFor(
      () => {
        if (this.stdout.includes(text) || this.stderr.includes(text)) return true;
        if (this.child.exitCode !== null) throw new Error(`it ended:\n${this.stdout}${this.stderr}`);
        return false;
      },
      { what: `"${text}" in the output` },
    );
  }

  signal(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }
}

/** A project of a user: a folder with an agents file and the packages beside it, a store, and a task queue of its own. */
export class Project {
  readonly folder = mkdtempSync(join(tmpdir(), 'everturn-cli-'));
  readonly store = join(this.folder, 'store');
  readonly env: Record<string, string>;
  #processes: CliProcess[] = [];
  #open: Store | undefined;

  constructor(env: Record<string, string> = {}) {
    mkdirSync(join(this.folder, 'node_modules'));
    symlinkSync(root, join(this.folder, 'node_modules/everturn'));
    symlinkSync(join(root, 'node_modules/zod'), join(this.folder, 'node_modules/zod'));
    this.write('package.json', '{"type": "module"}');
    this.env = {
      TEMPORAL_ADDRESS: process.env.EVERTURN_TEST_TEMPORAL ?? '',
      EVERTURN_TASK_QUEUE: `cli-${randomUUID()}`,
      EVERTURN_STORE: this.store,
      ...env,
    };
  }

  path(name: string): string {
    return join(this.folder, name);
  }

  write(name: string, content: string | Uint8Array): string {
    writeFileSync(this.path(name), content);
    return this.path(name);
  }

  /** Starts `everturn` with these arguments, in the folder, from a shell's point of view. */
  start(args: string[], env: Record<string, string> = {}): CliProcess {
    return this.#spawn(process.execPath, [...nodeFlags, main, ...args], env);
  }

  run(args: string[], env: Record<string, string> = {}): Promise<Ended> {
    return this.start(args, env).ended;
  }

  /** `everturn ARGS | REST` in a shell; the streams are those of the whole line. */
  startPiped(args: string[], rest: string): CliProcess {
    const words = [process.execPath, ...nodeFlags, main, ...args].map((word) => `'${word}'`);
    return this.#spawn('sh', ['-c', `${words.join(' ')} | ${rest}`], {});
  }

  async startWorker(): Promise<CliProcess> {
    this.write('everturn.agents.ts', agentsSource);
    const worker = this.start(['worker']);
    await worker.until('is ready');
    return worker;
  }

  /** The project's store, for looking at what the command line did. */
  async openStore(): Promise<Store> {
    this.#open ??= await openStore({ path: this.store });
    return this.#open;
  }

  /** Ends what is still running, and removes the folder. */
  async remove(): Promise<void> {
    for (const one of this.#processes) if (one.child.exitCode === null) one.signal('SIGKILL');
    await Promise.all(this.#processes.map((one) => one.ended));
    await this.#open?.close();
    rmSync(this.folder, { recursive: true, force: true });
  }

  #spawn(command: string, args: string[], env: Record<string, string>): CliProcess {
    const { PATH = '', HOME = '', TMPDIR } = process.env;
    const NODE_COMPILE_CACHE = join(this.folder, 'compile-cache');
    const outer = { PATH, HOME, NODE_COMPILE_CACHE, ...(TMPDIR === undefined ? {} : { TMPDIR }) };
    const child = spawn(command, args, {
      cwd: this.folder,
      env: { ...outer, ...this.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const started = new CliProcess(child);
    this.#processes.push(started);
    return started;
  }
}

/** The JSON lines of an output. */
export function objects(output: string): Record<string, unknown>[] {
  return output
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}
