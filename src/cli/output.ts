import { Ink, wantsColour } from './ink.ts';

/**
 * Where a command writes. Results go to stdout: text for people, or with `--json` one JSON object a line. Errors and notes
 * go to stderr. A reader that goes away (`| head`) ends the command quietly: what it started in a worker goes on.
 */
export class Output {
  readonly json: boolean;
  readonly ink: Ink;

  constructor(json = false) {
    this.json = json;
    this.ink = new Ink(!json && wantsColour(process.stdout, process.env));
  }

  /** Text for people, as it is; nothing with `--json`. */
  text(text: string): void {
    if (!this.json && text !== '') process.stdout.write(text);
  }

  line(text: string): void {
    this.text(`${text}\n`);
  }

  /** One line of JSON; nothing without `--json`. */
  object(value: object): void {
    if (this.json) process.stdout.write(`${JSON.stringify(value)}\n`);
  }

  /** Tells what happens beside the results: a line on stderr, or with `--json` an object on stdout. */
  note(text: string, value: object): void {
    if (this.json) this.object(value);
    else process.stderr.write(`${text}\n`);
  }
}

/** Every write after the reader's end fails: there is nobody to tell. On a full disk there is. */
export function endWithReader(): void {
  process.stderr.on('error', () => process.exit(1));
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0);
    process.stderr.write(`everturn: the output cannot be written: ${error.message}\n`);
    process.exit(1);
  });
}
