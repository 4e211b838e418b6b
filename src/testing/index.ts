/**
 * Helpers for tests of agents: a model that plays a script, a provider server that speaks the real wire formats, and
 * Temporal's development server. They keep to Node's own modules and run under any test runner.
 */
export type { DevServer, DevServerOptions } from '../cli/dev-server.ts';
/** A Temporal server of one's own, which ends with the process. It needs the `temporal` binary. */
export { startDevServer } from '../cli/dev-server.ts';
export type {
  ProviderReply,
  ProviderServer,
  ProviderServerOptions,
  RecordedRequest,
  ReplyBlock,
  ReplyError,
  ReplyFault,
  ReplyUsage,
  RequestEnd,
  Wire,
} from './provider-server.ts';
/** For what lies below the model interface: HTTP errors, broken streams, headers, payloads on the wire. */
export { startProviderServer } from './provider-server.ts';
export type { ReplayOptions, ReplayResult, SessionHistory } from './replay.ts';
/** For changes of policies: whether sessions that are going on would still do what they did. */
export { replayHistories, replayHistory } from './replay.ts';
export type {
  ScriptedCall,
  ScriptedModel,
  ScriptedModelOptions,
  ScriptedReplies,
  ScriptedReply,
  ScriptedRequest,
  ScriptedUsage,
} from './scripted-model.ts';
/** For everything above it: what the agent does with replies, and the exact messages that the model gets. */
export { readRequests, scriptedModel } from './scripted-model.ts';
