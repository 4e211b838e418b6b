import { z } from 'zod';
import type { HookInstaller } from '../../agent/agent.ts';
import { canonicalJson } from '../../common/json.ts';
import type { ToolCallEvent, ToolCallResult } from '../harness-types.ts';
import type { HookSettings } from '../types.ts';
import { checkOptions, isFunction } from './options.ts';
import { matcher, type Pattern, patternSchema } from './patterns.ts';

export type Permission = 'allow' | 'deny' | 'ask';

export interface PermissionRule {
  /** The tools that it is for, by name. Default: all. */
  tool?: Pattern | readonly Pattern[];
  /**
   * Arguments that must all match, by path: `{ command: 'git *', 'options.depth': /^\d$/ }`. What is no text is matched
   * as JSON. A path that is not there does not match.
   */
  args?: Record<string, Pattern>;
  permission: Permission;
  /** What the model is told, or the person who is asked. */
  reason?: string;
  /** Of `ask`: milliseconds that the question stays open. Default: no limit. */
  expiresAfter?: number;
}

export interface PermissionGateOptions {
  /** The first that matches decides. */
  rules?: readonly PermissionRule[];
  /** Asked for calls that no rule matches; may wait for another service. undefined: `otherwise` decides. */
  check?: (
    call: ToolCallEvent,
  ) => Permission | ToolCallResult | undefined | Promise<Permission | ToolCallResult | undefined>;
  /** For calls that neither a rule nor `check` decides. Default: deny. */
  otherwise?: Permission;
  /** Default: local when there is no `check`. */
  hook?: HookSettings;
}

const permissions = ['allow', 'deny', 'ask'] as const satisfies readonly Permission[];

const optionsSchema = z.strictObject({
  rules: z
    .array(
      z.strictObject({
        tool: z.union([patternSchema, z.array(patternSchema).min(1)]).exactOptional(),
        args: z.record(z.string(), patternSchema).exactOptional(),
        permission: z.enum(permissions),
        reason: z.string().exactOptional(),
        expiresAfter: z.number().int().positive().exactOptional(),
      }),
    )
    .default([]),
  check: z.custom<NonNullable<PermissionGateOptions['check']>>(isFunction, 'must be a function').exactOptional(),
  otherwise: z.enum(permissions).default('deny'),
  hook: z.custom<HookSettings>().exactOptional(),
});

/**
 * Permission gate: lets calls of tools through, blocks them, or asks a person. What nothing decides is denied, and a
 * `check` that throws lets nothing through. Rules match the text of arguments, not what it means: `git *` also matches
 * `git status; rm -rf /`. For shells and paths give a `check` that understands them, and a sandbox.
 */
export function permissionGate(options: PermissionGateOptions): HookInstaller {
  const { rules, check, otherwise, hook } = checkOptions('permissionGate', optionsSchema, options);
  const compiled = rules.map(compile);
  const decide = async (call: ToolCallEvent): Promise<ToolCallResult | undefined> => {
    const rule = compiled.find(({ matches }) => matches(call));
    if (rule !== undefined) return rule.verdict(call);
    const answer = (await check?.(call)) ?? otherwise;
    return typeof answer === 'string' ? verdictOf(answer, call, {}) : answer;
  };
  return (agent) => agent.on('tool_call', decide, { ...(check === undefined ? { local: true } : {}), ...hook });
}

function compile(rule: PermissionRule) {
  const tools = rule.tool === undefined ? [] : [rule.tool].flat().map(matcher);
  const args = Object.entries(rule.args ?? {}).map(([path, pattern]) => ({ path, matches: matcher(pattern) }));
  return {
    matches: ({ toolName, input }: ToolCallEvent) =>
      (rule.tool === undefined || tools.some((matches) => matches(toolName))) &&
      args.every(({ path, matches }) => {
        const value = valueAt(input, path);
        return value !== undefined && matches(typeof value === 'string' ? value : canonicalJson(value));
      }),
    verdict: (call: ToolCallEvent) => verdictOf(rule.permission, call, rule),
  };
}

function valueAt(input: unknown, path: string): unknown {
  // A name with a dot in it is taken as it stands.
  if (typeof input !== 'object' || input === null) return undefined;
  if (Object.hasOwn(input, path)) return (input as Record<string, unknown>)[path];
  const dot = path.indexOf('.');
  if (dot < 0 || !Object.hasOwn(input, path.slice(0, dot))) return undefined;
  return valueAt((input as Record<string, unknown>)[path.slice(0, dot)], path.slice(dot + 1));
}

function verdictOf(
  permission: Permission,
  { toolName }: ToolCallEvent,
  { reason, expiresAfter }: Pick<PermissionRule, 'reason' | 'expiresAfter'>,
): ToolCallResult | undefined {
  if (permission === 'allow') return undefined;
  if (permission === 'deny')
    return { block: true, reason: reason ?? `Permission denied: ${toolName} may not be called like this.` };
  return {
    ask: { reason: reason ?? `May ${toolName} be called?`, ...(expiresAfter === undefined ? {} : { expiresAfter }) },
  };
}
