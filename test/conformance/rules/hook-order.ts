import type { HookCall, Observation } from '../observation.ts';
import type { Rule } from '../rules.ts';
import { baseSystemPrompt } from '../scenario.ts';

const contextHooks: ReadonlySet<string> = new Set(['context', 'transformContext', 'convertToLlm']);

/**
 * Difference 45: before_provider_request comes before the context hooks. When one of them throws, the other side's later
 * ones were not asked. Difference 44: the system prompt of before_agent_start holds for the whole run, and in pi for its
 * first request.
 */
export const hookOrder: Rule = ({ scenario, pi, everturn, use }) => {
  const groups = requestsOf(pi.calls);
  for (const group of groups) {
    const asked = group.filter(({ hook }) => hook === 'before_provider_request');
    const context = group.filter(({ hook }) => contextHooks.has(hook));
    const [first] = group;
    if (first === undefined) continue;
    if (context.at(-1)?.move === 'throw') {
      const count = everturn.calls.length;
      everturn.calls = everturn.calls.filter(
        ({ hook, run, turn }) => hook !== 'before_provider_request' || run !== first.run || turn !== first.turn,
      );
      if (everturn.calls.length < count) use(45);
    }
    if (asked.length === 0 || context.length === 0) continue;
    use(45);
    const at = pi.calls.indexOf(first);
    const order = asked.at(-1)?.move === 'throw' ? asked : [...asked, ...context];
    pi.calls.splice(at, group.length, ...order);
  }
  if (scenario.setup.layer === 'harness') keepSystemPrompt(pi, scenario.runs.length, () => use(44));
};

/** The hook calls of each request, up to its payload: they stand side by side. */
function requestsOf(calls: readonly HookCall[]): HookCall[][] {
  const groups: HookCall[][] = [];
  let last: HookCall | undefined;
  for (const call of calls) {
    const isBefore = contextHooks.has(call.hook) || call.hook === 'before_provider_request';
    if (isBefore && last !== undefined && last.run === call.run && last.turn === call.turn) groups.at(-1)?.push(call);
    else if (isBefore) groups.push([call]);
    last = isBefore ? call : undefined;
  }
  return groups;
}

function keepSystemPrompt(pi: Observation, runs: number, used: () => void): void {
  for (let run = 0; run < runs; run++) {
    const [first, ...later] = pi.requests.filter((request) => request.run === run);
    if (first === undefined || first.systemPrompt === baseSystemPrompt) continue;
    const { systemPrompt } = first;
    const payloads = pi.calls
      .filter((call) => call.hook === 'before_provider_payload' && call.run === run && call.turn > 0)
      .map(({ seen }) => (seen as unknown as { payload: { system: string } }).payload);
    for (const payload of [...payloads, ...later.map((request) => request.payload as { system: string })]) {
      if (payload.system !== baseSystemPrompt) continue;
      payload.system = systemPrompt;
      used();
    }
    for (const request of later) if (request.systemPrompt === baseSystemPrompt) request.systemPrompt = systemPrompt;
  }
}
