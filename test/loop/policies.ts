import { condition, defineSignal, setHandler } from '@temporalio/workflow';
import { definePolicy, estimateTokens, textOf, toolCallsOf } from 'everturn/workflows';

// Policies of the agents of this folder, for the suite's workflow bundle. What they do is told by the prompt of the run,
// so that they stay deterministic.

/** Tells what it was given, in the model's name: the only thing that a test sees of a policy. */
definePolicy('spied', {
  prepareNextTurn({ message, toolResults, context, newMessages }) {
    const said = {
      message: textOf(message),
      results: toolResults.map(textOf),
      context: context.messages.map((item) => `${item.role}: ${textOf(item)}`),
      systemPrompt: context.systemPrompt,
      tools: context.tools?.map((tool) => tool.name),
      newMessages: newMessages.map((item) => `${item.role}: ${textOf(item)}`),
    };
    return { context: { ...context, systemPrompt: JSON.stringify(said) } };
  },
});

definePolicy('stopping', {
  shouldStopAfterTurn: async ({ message, toolResults }) => {
    if (textOf(message).includes('SLOW')) await Promise.resolve();
    return textOf(message).includes('STOP') || toolResults.some((result) => textOf(result).includes('STOP'));
  },
  prepareNextTurn: ({ message }) => (textOf(message).includes('STOP') ? { model: 'nobody/never-asked' } : undefined),
});

/** Decides when it is told to, by a signal of its own: so a message can come before that. */
definePolicy('deciding', {
  async shouldStopAfterTurn({ message }) {
    if (!textOf(message).includes('STOP')) return false;
    let told = false;
    setHandler(defineSignal('decide'), () => {
      told = true;
    });
    await condition(() => told);
    return true;
  },
});

definePolicy('switching', {
  prepareNextTurn({ newMessages, context }) {
    const wish = textOf(newMessages[0] ?? {});
    if (wish.includes('model object')) return { model: { provider: 'scripted', id: 'other' } };
    if (wish.includes('model')) return { model: 'scripted/other' };
    if (wish.includes('thinking')) return { thinkingLevel: 'high' };
    if (wish.includes('tools')) return { context: { ...context, tools: [{ name: 'say', description: '' }] } };
    if (wish.includes('unknown')) return { model: 'scripted/nobody' };
    return undefined;
  },
});

/** Keeps the last message alone, once the context is larger than it likes. */
definePolicy('compacting', {
  prepareNextTurn({ context }) {
    if (context.messages.length < 3) return undefined;
    const summary = `${context.messages.length} messages, ${estimateTokens(context.messages) > 0} tokens`;
    return {
      context: { ...context, messages: [{ role: 'user', content: [{ type: 'text', text: summary }], timestamp: 1 }] },
    };
  },
});

definePolicy('large', {
  prepareNextTurn: ({ context }) => ({ context: { ...context, systemPrompt: 'large' } }),
  shouldStopAfterTurn: ({ message }) => toolCallsOf(message).length > 5,
});

definePolicy('throwing', {
  shouldStopAfterTurn({ newMessages }) {
    if (textOf(newMessages[0] ?? {}).includes('stop throws')) throw new TypeError('x is not a function');
    return false;
  },
  prepareNextTurn({ newMessages }) {
    const wish = textOf(newMessages[0] ?? {});
    if (wish.includes('prepare throws')) throw new Error('out of ideas');
    if (wish.includes('rejects')) return Promise.reject('only a text');
    const garbage: Record<string, unknown> = {
      'a text': 'later',
      'a wrong model': { model: 'no slash' },
      'an empty model': { model: {} },
      'a wrong level': { thinkingLevel: 'extreme' },
      'a wrong context': { context: { messages: 'all' } },
      'a wrong message': { context: { systemPrompt: '', messages: [null] } },
      'wrong tools': { context: { systemPrompt: '', messages: [], tools: 'all' } },
    };
    const name = Object.keys(garbage).find((key) => wish.includes(key));
    return name === undefined ? undefined : (garbage[name] as never);
  },
});

/** Sees what the queue hook gave: each message once. */
definePolicy('steered', {
  shouldStopAfterTurn: ({ newMessages }) =>
    newMessages.filter((message) => textOf(message) === 'By the way').length > 1,
});
