import { definePolicy, earlyTermination, textOf } from 'everturn/workflows';

// Policies of the agents of this folder, for the suite's workflow bundle. What they do is told by the prompt of the run.

/** pi 1.6's names. */
definePolicy('hooks-1.6', {
  finishTurn({ message, newMessages, toolResults }) {
    const wish = textOf(newMessages[0] ?? {});
    if (wish.includes('finish throws')) throw new Error('finish is broken');
    if (wish.includes('end at once')) return { action: 'end' };
    if (wish.includes('once more') && toolResults.length === 0 && !textOf(message).includes('last'))
      return { action: 'continue' };
    return undefined;
  },
  shouldStopAfterTurn: ({ newMessages }) => textOf(newMessages[0] ?? {}).includes('stop anyway'),
  prepareRequest({ context, model, thinkingLevel }) {
    const wish = textOf(context.messages.find((message) => textOf(message).includes('prepare')) ?? {});
    if (wish === '') return undefined;
    if (wish.includes('prepare throws')) throw new Error('prepare is broken');
    const last = context.messages.at(-1);
    return {
      context: {
        ...context,
        systemPrompt: `${model} ${thinkingLevel}, ${context.messages.length} messages, the last of ${last?.role}`,
      },
      thinkingLevel: last?.role === 'toolResult' ? 'high' : 'low',
    };
  },
});

definePolicy('hooks-early', earlyTermination({ marker: 'TASK_COMPLETE', tools: ['stop'] }));
