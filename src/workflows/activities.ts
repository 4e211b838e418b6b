import { ActivityCancellationType, proxyActivities, proxyLocalActivities } from '@temporalio/workflow';
import type { Effects, LocalEffects, ToolInput, ToolResult } from '../common/effects.ts';
import type { AgentManifest, GateManifest, ToolManifest } from '../common/manifest.ts';

// Attempts are not limited here: an effect knows its attempt and ends in an honest outcome. What must not be retried is
// thrown as non-retryable. An aborted effect writes what it has and returns, so a cancellation waits for it.
const retry = { initialInterval: '100ms', backoffCoefficient: 2, maximumInterval: '10s' } as const;
const cancellationType = ActivityCancellationType.WAIT_CANCELLATION_COMPLETED;
const graceMs = 15_000;

/** Effects of a session: heartbeats tell within 3 s that a worker is lost. */
export const effects = proxyActivities<Pick<Effects, 'pollQueueHook' | 'loadContext' | 'saveContext'>>({
  startToCloseTimeout: '5 minutes',
  heartbeatTimeout: '3s',
  retry,
  cancellationType,
});

/** Look-ups and the opening are quick and send no heartbeat: a worker that is lost in one is noticed by its time limit. */
export const quick = proxyActivities<Pick<Effects, 'openSession' | 'checkModel' | 'expandPrompt'>>({
  startToCloseTimeout: '10s',
  retry,
  cancellationType,
});

/** For effects whose time limit is the agent's. */
export const modelEffects = perManifest(
  (manifest: AgentManifest): Pick<Effects, 'streamAssistantResponse'> =>
    proxyActivities<Pick<Effects, 'streamAssistantResponse'>>({
      startToCloseTimeout: manifest.modelTimeoutMs + graceMs,
      heartbeatTimeout: '3s',
      retry,
      cancellationType,
    }),
);

type Gates = Pick<Effects, 'beforeAgentStart' | 'beforeToolCall'>;

/** A gate may wait for a rate limit or another service: it has an hour. A local one has no heartbeat, and is quick. */
export function gateOf(gate: GateManifest): Gates {
  return gate.local ? localGates : gates;
}

const gates = proxyActivities<Gates>({
  startToCloseTimeout: '1 hour',
  heartbeatTimeout: '3s',
  retry,
  cancellationType,
});
const localGates = proxyLocalActivities<Gates>({ startToCloseTimeout: '30s', retry, cancellationType });

export function executeTool(tool: ToolManifest, input: ToolInput): Promise<ToolResult> {
  if (tool.local) return localTools.executeTool(input);
  return toolEffects(tool).executeTool(input);
}

const toolEffects = perManifest((tool: ToolManifest) =>
  proxyActivities<Pick<Effects, 'executeTool'>>({
    startToCloseTimeout: tool.timeoutMs + graceMs,
    heartbeatTimeout: tool.heartbeatTimeoutMs,
    retry,
    cancellationType,
    ...(tool.taskQueue === undefined ? {} : { taskQueue: tool.taskQueue }),
  }),
);

const localTools = proxyLocalActivities<Pick<Effects, 'executeTool'>>({
  startToCloseTimeout: '30s',
  retry,
  cancellationType,
});

export const local = proxyLocalActivities<LocalEffects>({ startToCloseTimeout: '30s', retry });

function perManifest<Manifest extends object, Proxy>(
  make: (manifest: Manifest) => Proxy,
): (manifest: Manifest) => Proxy {
  const made = new WeakMap<Manifest, Proxy>();
  return (manifest) => {
    const known = made.get(manifest) ?? make(manifest);
    made.set(manifest, known);
    return known;
  };
}
