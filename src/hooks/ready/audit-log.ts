import { z } from 'zod';
import type { HookInstaller } from '../../agent/agent.ts';
import { errorText } from '../../common/errors.ts';
import type { ImageContent, TextContent, Usage } from '../../common/messages.ts';
import { currentSession } from '../current-signal.ts';
import type { HookSettings } from '../types.ts';
import { checkOptions, isFunction } from './options.ts';

interface AuditPlace {
  /** ISO 8601, UTC, by the clock of this worker. */
  at: string;
  sessionId: string;
  runId: string;
  toolCallId: string;
  toolName: string;
  input: Record<string, unknown>;
}

export type AuditRecord = AuditPlace &
  (
    | { type: 'tool_call' }
    | {
        type: 'tool_result';
        content: (TextContent | ImageContent)[];
        details: unknown;
        isError: boolean;
        usage?: Usage;
      }
  );

export interface AuditLogOptions {
  /** Takes a record. The call or the result waits for it, at most timeoutMs. */
  sink: (record: AuditRecord) => void | Promise<void>;
  /** Changes a record before it leaves, such as `secretRedactor()`. */
  redact?: (record: AuditRecord) => AuditRecord;
  /** Hears of what the sink or `redact` threw, and of a sink that takes too long. Default: a process warning. */
  onError?: (error: unknown, record: Pick<AuditRecord, 'type' | 'sessionId' | 'toolCallId'>) => void;
  /** Milliseconds. Default: 5,000. */
  timeoutMs?: number;
  hook?: HookSettings;
}

const fn = <T>() => z.custom<T>(isFunction, 'must be a function');
const optionsSchema = z.strictObject({
  sink: fn<AuditLogOptions['sink']>(),
  redact: fn<NonNullable<AuditLogOptions['redact']>>().exactOptional(),
  onError: fn<NonNullable<AuditLogOptions['onError']>>().exactOptional(),
  timeoutMs: z.number().int().positive().default(5_000),
  hook: z.custom<HookSettings>().exactOptional(),
});

/**
 * Audit log: tells a sink of each tool call that comes to the gate and of each result. It sees what stands before it in
 * `use`: put it first to see the calls that later gates refuse, last to see results as they were patched. A sink that
 * fails or hangs never breaks the run. A worker that dies right after the sink took a record tells it again, so a sink
 * dedupes by session and tool call id. (The session's own log has all of this in any case, chained by hashes.)
 */
export function auditLog(options: AuditLogOptions): HookInstaller {
  const { sink, redact, onError = warn, timeoutMs, hook } = checkOptions('auditLog', optionsSchema, options);
  const tell = async (record: AuditRecord): Promise<undefined> => {
    try {
      const shown = redact === undefined ? record : redact(record);
      await within(timeoutMs, async () => sink(shown));
    } catch (error) {
      const { type, sessionId, toolCallId } = record;
      try {
        onError(error, { type, sessionId, toolCallId });
      } catch {
        // The one that is told of errors is the last: there is nobody to tell of its own.
      }
    }
  };
  return (agent) => {
    const ends = [
      agent.on('tool_call', ({ type, ...facts }) => tell({ type, ...place(), ...structuredClone(facts) }), hook),
      agent.on('tool_result', ({ type, ...facts }) => tell({ type, ...place(), ...structuredClone(facts) }), hook),
    ];
    return () => ends.forEach((end) => void end());
  };
}

function place(): Pick<AuditPlace, 'at' | 'sessionId' | 'runId'> {
  const { sessionId = '', runId = '' } = currentSession() ?? {};
  return { at: new Date().toISOString(), sessionId, runId };
}

async function within(timeoutMs: number, call: () => Promise<void>): Promise<void> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(`the sink took more than ${timeoutMs} ms`)), timeoutMs);
  try {
    await Promise.race([call(), late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

function warn(
  error: unknown,
  { type, sessionId, toolCallId }: Pick<AuditRecord, 'type' | 'sessionId' | 'toolCallId'>,
): void {
  process.emitWarning(`auditLog: ${type} ${toolCallId} of session ${sessionId} was not taken: ${errorText(error)}`);
}
