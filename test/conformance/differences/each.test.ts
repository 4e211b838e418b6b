import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';

// Each numbered difference of docs/differences.md has a test: here by its number, or elsewhere by its name.

const elsewhere: Record<number, [file: string, name: string]> = {
  2: ['loop/length', 'three such replies in a row end the run with output_limit'],
  3: ['loop/basics', 'a run ends with turn_limit after maxTurns turns'],
  4: ['loop/batches', 'of more than 16 parallel calls 16 run at once'],
  8: ['loop/prompts', 'a prompt while a run goes on is refused with code busy'],
  10: ['hooks/policies', 'what waits starts with the next run'],
  11: ['loop/queues', 'a change of mode counts for messages that wait already'],
  13: ['loop/abort', 'one that is deaf as unknown'],
  14: ['loop/abort', 'an abort of a named run that is not going on does nothing'],
  15: ['loop/abort', 'an abort while nothing runs returns at once and changes nothing'],
  17: ['hooks/rows', 'no retry of an effect asks a hook again'],
  19: ['loop/policies', 'shouldStopAfterTurn ends the run after turn_end'],
  20: ['loop/policies', 'a policy sees the reply, its results, the context'],
  21: ['hooks/lifecycle', 'lets no tool call through'],
  22: ['hooks/merging', 'reach the tool as JSON'],
  23: ['loop/tools', 'arguments are coerced and get their defaults'],
  24: ['loop/tools', 'a result of 3 MB is an error'],
  25: ['hooks/pi-tools', 'isError, details and terminate count'],
  26: ['loop/basics', 'a run with a tool is two turns'],
  27: ['loop/tools', 'a tool that stops at its timeout fails'],
  28: ['crash/kill', 'a worker killed $where'],
  29: ['loop/model-errors', 'a transient error is sent again'],
  30: ['loop/model-errors', 'a provider that says nothing for stallTimeoutMs is asked again'],
  31: ['borders/opening', 'an unknown model is unknown_model'],
  41: ['loop/prompts', 'the next prompt ends it as interrupted'],
  46: ['hooks/rows', 'agent.signal works inside'],
  47: ['hooks/merging', 'transformContext comes first'],
  48: ['hooks/ready', 'an update never shows a secret that has only begun'],
  50: ['hooks/policies', 'finishTurn continue asks for one more request'],
};

function numbersHere(): number[] {
  const folder = new URL('./', import.meta.url);
  const texts = readdirSync(folder).map((file) => readFileSync(new URL(file, folder), 'utf8'));
  const titles = texts.flatMap((text) => [...text.matchAll(/'differences? ([\d, and]+):/g)].map(([, list]) => list));
  return titles.flatMap((list) => [...(list ?? '').matchAll(/\d+/g)].map(Number));
}

test('every difference has a test of its own', () => {
  const docs = readFileSync(new URL('../../../docs/differences.md', import.meta.url), 'utf8');
  const numbers = [...docs.matchAll(/^(\d+)\. \*\*/gm)].map(([, number]) => Number(number));
  const here = new Set(numbersHere());
  const without = numbers.filter((number) => {
    const [file, name] = elsewhere[number] ?? [];
    if (file === undefined || name === undefined) return !here.has(number);
    return !readFileSync(new URL(`../../${file}.test.ts`, import.meta.url), 'utf8').includes(name);
  });
  expect(numbers.length).toBeGreaterThan(50);
  expect(without).toEqual([]);
});
