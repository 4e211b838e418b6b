import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { makeFolder } from './folders.ts';

const demo = fileURLToPath(new URL('../../examples/surveyor/demo.ts', import.meta.url));

/** The demo as a person starts it, without keys, in a folder for temporary files of its own. */
export class DemoProcess {
  readonly temporaryFolder = makeFolder();
  readonly child: ChildProcess;
  readonly exited: Promise<unknown>;
  output = '';
  errors = '';

  constructor(settings: Record<string, string> = {}) {
    const { ANTHROPIC_API_KEY: _a, OPENAI_API_KEY: _o, OPENAI_BASE_URL: _u, SURVEYOR_MODEL: _m, ...env } = process.env;
    this.child = spawn(
      process.execPath,
      ['--conditions=everturn-source', '--disable-warning=ExperimentalWarning', demo],
      {
        env: { ...env, NODE_OPTIONS: '', TMPDIR: this.temporaryFolder, ...settings },
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    );
    this.child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.output += text;
    });
    this.child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.errors += text;
    });
    this.exited = once(this.child, 'close');
  }

  /** Returns once the transcript shows this. @throws Error with the transcript when it ends without */
  async shows(text: string): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const look = () => {
      if (this.output.includes(text)) resolve();
    };
    this.child.stdout?.on('data', look);
    this.child.once('close', () => reject(new Error(`The demo never said "${text}":\n${this.output}\n${this.errors}`)));
    look();
    await promise;
  }

  /** Processes that the demo has started and that are alive: all of them have its folder in their environment. */
  leftovers(): string[] {
    const mark = `TMPDIR=${this.temporaryFolder}`;
    const processes = execFileSync('ps', ['axeww'], { encoding: 'utf8', maxBuffer: 50_000_000 }).split('\n');
    return processes.filter((line) => line.includes(mark)).map((line) => line.slice(0, 200));
  }
}
