import { appendFile } from 'node:fs/promises';
import { defineAgent, defineTool, openAICompatible } from 'everturn';
import { z } from 'zod';

const stock = new Map([
  ['lamp', 4],
  ['chair', 1],
]);

// Reads only: after a crash it is simply run again.
const checkStock = defineTool({
  name: 'check_stock',
  description: 'Says how many pieces of an item are in stock.',
  parameters: z.object({ item: z.string() }),
  replay: 'safe',
  execute: ({ item }) => `${stock.get(item) ?? 0} in stock`,
});

// Changes the world, so it keeps the default `replay: 'never'`: one call never enters it twice, whatever crashes.
const placeOrder = defineTool({
  name: 'place_order',
  description: 'Orders pieces of an item. Check the stock first.',
  parameters: z.object({ item: z.string(), count: z.number().int().positive() }),
  async execute({ item, count }) {
    await appendFile('orders.txt', `${count} ${item}\n`);
    return `Ordered: ${count} ${item}`;
  },
});

// A model of pi-ai's catalog, its key in the environment; or, with MODEL_BASE_URL, one of an OpenAI-compatible server.
const { MODEL = 'anthropic/claude-sonnet-5-5', MODEL_BASE_URL: baseUrl } = process.env;
const server = baseUrl === undefined ? undefined : openAICompatible({ id: 'local', baseUrl, models: [{ id: MODEL }] });

export const providers = server === undefined ? [] : [server];

export const shop = defineAgent({
  name: 'shop',
  model: server === undefined ? MODEL : `local/${MODEL}`,
  systemPrompt: 'You run the stock room of a shop. Answer in one sentence.',
  tools: [checkStock, placeOrder],
});
