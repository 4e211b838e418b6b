import type { Models } from '@earendil-works/pi-ai';
import type { Agent } from '../agent/agent.ts';
import { EverturnError } from '../common/errors.ts';
import type { ContextCache } from '../session/context-cache.ts';
import type { Store } from '../store/types.ts';
import type { DeltaWriter } from '../stream/delta-writer.ts';
import type { ControlWatcher } from './control-watcher.ts';
import type { Frame } from './model/build-request.ts';
import type { Recent } from './recent.ts';

/** What the effects of one worker share. */
export interface Runtime {
  store: Store;
  agents: ReadonlyMap<string, Agent>;
  models: Models;
  contexts: ContextCache;
  deltas: DeltaWriter;
  /** Digests of blobs that are in the store. */
  stored: Recent<true>;
  /** Frames of the last requests, by session, run and turn. */
  frames: Recent<Frame>;
  controls: ControlWatcher;
  /** Milliseconds that a tool or stream has to return after its signal fired. */
  graceMs: number;
  /** Tells the operator of something that no result can carry. */
  onNotice(text: string): void;
}

/** @throws EverturnError `unknown_agent`: the agents of a task queue's workers must be the same */
export function agentOf(runtime: Runtime, name: string): Agent {
  const agent = runtime.agents.get(name);
  if (agent !== undefined) return agent;
  const known = [...runtime.agents.keys()].join(', ') || 'none';
  throw new EverturnError(
    'unknown_agent',
    `This worker has no agent "${name}", it has: ${known}. Add it to createWorker({ agents }).`,
    {
      details: { agent: name },
    },
  );
}
