import { inspect } from 'node:util';
import { CommanderError } from 'commander';
import { type ErrorCode, type ErrorInfo, EverturnError, toErrorInfo } from '../common/errors.ts';

/** What the exit code of every command says. */
export const exitCodes = {
  /** Done; of `run`: the run ended well. */
  ok: 0,
  /** A run ended otherwise, a log does not verify, or something broke that is nobody's input. */
  failed: 1,
  /** Nothing was done: bad input, or something that the command needs is not there. */
  refused: 2,
} as const;

// What a run may break with, or a bug: the command itself was right.
const broken: readonly ErrorCode[] = [
  'internal',
  'model_failed',
  'output_limit',
  'turn_limit',
  'hook',
  'policy',
  'fenced',
  'session_closed',
  'cancelled',
];

export function exitCodeOf(error: unknown): number {
  return broken.includes(infoOf(error).code) ? exitCodes.failed : exitCodes.refused;
}

/** The one line on stderr that says what is wrong: for people, or with `--json` as `{"error": {code, message, details}}`. */
export function failureLine(error: unknown, json: boolean): string {
  const { code, message, details } = infoOf(error);
  if (json) return JSON.stringify({ error: { code, message, details: details ?? null } });
  return `everturn: ${message}`;
}

/** Everything about an error, for EVERTURN_DEBUG=1. */
export function debugText(error: unknown): string {
  return inspect(error, { depth: 4 });
}

export function invalidArgument(message: string): EverturnError {
  return new EverturnError('invalid_argument', message);
}

function infoOf(error: unknown): ErrorInfo {
  const info = error instanceof CommanderError ? usageError(error) : toErrorInfo(error);
  return { ...info, message: info.message.replace(/\s*\n\s*/g, ' ').trim() };
}

function usageError({ code, message }: CommanderError): ErrorInfo {
  if (code === 'commander.help')
    return { code: 'invalid_argument', message: 'Give a command. "everturn --help" lists them.' };
  const text = message.replace(/^error: /, '').replace(/\n\((.*)\)$/, '. $1');
  return { code: 'invalid_argument', message: `${text}${/[.?]$/.test(text) ? '' : '.'} See "everturn --help".` };
}

/** True for the ends of a parse that are no errors: help and version were printed. */
export function isHelp(error: unknown): boolean {
  return error instanceof CommanderError && error.exitCode === 0;
}
