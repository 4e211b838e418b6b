import type { SeenEvent } from '../observation.ts';
import type { Rule } from '../rules.ts';
import { byRun, messageOf } from './walk.ts';

const settings: ReadonlySet<string> = new Set(['model_update', 'thinking_level_update', 'tools_update']);

/**
 * Where events stand in the log: 35, updates of a tool are live and have no place there, so here they stand right before
 * its end; 53, a change of settings during a turn is told at the turn's end, where its entry is; 54,
 * after_provider_response stands right before the reply; 55, what a run's first drain took is told before agent_start.
 */
export const eventPlaces: Rule = ({ pi, use }) => {
  pi.events = byRun(pi.events).flatMap((run) =>
    updatesAtEnd(
      firstDrain(
        settingsAtTurnEnd(
          responseBeforeReply(run, () => use(54)),
          () => use(53),
        ),
        () => use(55),
      ),
      () => use(35),
    ),
  );
};

function updatesAtEnd(run: SeenEvent[], used: () => void): SeenEvent[] {
  const waiting: SeenEvent[] = [];
  return run.flatMap((event) => {
    if (event.type === 'tool_execution_update') {
      waiting.push(event);
      return [];
    }
    if (waiting.length === 0) return [event];
    if (event.type === 'tool_execution_end' && event.call === waiting[0]?.call) return [...waiting.splice(0), event];
    used();
    return [event];
  });
}

function settingsAtTurnEnd(run: SeenEvent[], used: () => void): SeenEvent[] {
  const begin = run.findIndex(({ type }) => type === 'agent_start');
  const waiting: SeenEvent[] = [];
  return run.flatMap((event, index) => {
    if (index > begin && begin >= 0 && settings.has(event.type)) {
      waiting.push(event);
      used();
      return [];
    }
    return event.type === 'turn_end' ? [event, ...waiting.splice(0)] : [event];
  });
}

function responseBeforeReply(run: SeenEvent[], used: () => void): SeenEvent[] {
  let waiting: SeenEvent | undefined;
  return run.flatMap((event) => {
    if (event.type === 'after_provider_response') {
      waiting = event;
      return [];
    }
    if (waiting === undefined) return [event];
    if (messageOf(event)?.role !== 'assistant') {
      used();
      return [event];
    }
    const response = waiting;
    waiting = undefined;
    return [response, event];
  });
}

/** The drain is told right before the messages that it took, in the first turn before anything else. */
function firstDrain(run: SeenEvent[], used: () => void): SeenEvent[] {
  const begin = run.findIndex(({ type }) => type === 'agent_start');
  const reply = run.findIndex((event) => messageOf(event)?.role === 'assistant');
  const at = run.findIndex((event, index) => {
    const next = run[index + 1];
    return index > begin && event.type === 'queue_update' && next !== undefined && messageOf(next)?.role === 'user';
  });
  if (begin < 0 || at < 0 || at > reply) return run;
  used();
  const [drain] = run.splice(at, 1);
  run.splice(begin, 0, drain as SeenEvent);
  return run;
}
