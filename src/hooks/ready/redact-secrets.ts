import { z } from 'zod';
import type { HookInstaller } from '../../agent/agent.ts';
import { canonicalJson } from '../../common/json.ts';
import type { ImageContent, TextContent } from '../../common/messages.ts';
import type { ToolResultPatch } from '../harness-types.ts';
import type { HookSettings } from '../types.ts';
import { checkOptions } from './options.ts';
import { Redactor, type RedactorOptions } from './redactor.ts';

export interface RedactSecretsOptions extends RedactorOptions {
  /** Default: tries and delay of every hook. */
  hook?: Omit<HookSettings, 'local'>;
}

const redactorShape = {
  patterns: z
    .array(z.instanceof(RegExp).refine((pattern) => !pattern.test(''), 'matches the empty text'))
    .exactOptional(),
  // Shorter ones would be found everywhere.
  values: z.array(z.string().min(6, 'a value needs at least 6 characters')).exactOptional(),
  wellKnown: z.boolean().exactOptional(),
  fields: z.instanceof(RegExp).exactOptional(),
  replacement: z.string().exactOptional(),
};
const redactorSchema = z.strictObject(redactorShape);
const optionsSchema = z.strictObject({ ...redactorShape, hook: z.custom<HookSettings>().exactOptional() });

/**
 * Secret redaction: replaces secrets in the texts and details of tool results (errors included) and in the updates that
 * a running tool streams, in the worker that ran the tool. A secret over the border of two text blocks is found, and one
 * that has only begun at the end of an update is hidden. Not found: what is encoded or encrypted, images, and a secret of
 * which two updates each carry one part. Not looked at: arguments that the model wrote, its own text, `progress` notes.
 */
export function redactSecrets(options: RedactSecretsOptions = {}): HookInstaller {
  const { hook, ...shapes } = checkOptions('redactSecrets', optionsSchema, options);
  const redactor = new Redactor(shapes);
  return (agent) => {
    const ends = [
      agent.on('tool_result', ({ content, details }) => patchOf(redactor, content, details), hook),
      agent.on('tool_update', ({ partialResult }) => ({ partialResult: updateOf(redactor, partialResult) })),
    ];
    return () => ends.forEach((end) => void end());
  };
}

/** The same redaction as a function over plain values: for `auditLog({ redact })` and whatever else leaves a process. */
export function secretRedactor(options: RedactorOptions = {}): <T>(value: T) => T {
  const redactor = new Redactor(checkOptions('secretRedactor', redactorSchema, options));
  return (value) => redactor.value(value);
}

function patchOf(
  redactor: Redactor,
  content: readonly (TextContent | ImageContent)[],
  details: unknown,
): ToolResultPatch | undefined {
  const texts = redactor.texts(content.flatMap((block) => (block.type === 'text' ? [block.text] : [])));
  const changed = content.map((block) => (block.type === 'text' ? { ...block, text: texts.shift() ?? '' } : block));
  const shown = redactor.value(details);
  const patch: ToolResultPatch = {};
  if (canonicalJson(changed) !== canonicalJson(content)) patch.content = changed;
  if (canonicalJson(shown) !== canonicalJson(details)) patch.details = shown;
  return Object.keys(patch).length === 0 ? undefined : patch;
}

/** As readers will get it: through JSON. A partial result that cannot go through it is dropped by the throw. */
function updateOf(redactor: Redactor, partial: unknown): unknown {
  const plain = JSON.parse(JSON.stringify(partial ?? null)) as unknown;
  return redactor.value(plain, (text) => redactor.growingText(text));
}
