import type { Message } from '@earendil-works/pi-ai';
import { planAnswer } from './answers.ts';
import { Evidence, isOutcomeUnknown, type Step } from './evidence.ts';
import { readCounts } from './facts.ts';
import { count, joined } from './format.ts';
import { type Journal, readJournal } from './journal.ts';
import { renderReport, topicTitle } from './report.ts';
import { type Request, readRequests, type Topic } from './requests.ts';
import { reportPath, writeStep } from './steps.ts';
import { surveyPhases } from './survey.ts';

/** What the model says next. Without calls it is an answer, and the run is over unless a message waits. */
export interface Decision {
  text: string;
  calls: Step[];
}

/** Whatever happens, an answer comes after this many calls. */
const maxCallsPerAnswer = 80;

/**
 * The offline model's mind: a function of the transcript and of nothing else. A retry after a crash decides alike, and
 * every figure it writes comes from a tool result.
 */
export function decide(messages: readonly Message[]): Decision {
  const journal = readJournal(messages);
  const requests = readRequests(journal.users);
  const waiting = requests.filter((request) => request.position > journal.lastAnswer);
  // A new survey looks at everything anew; until then what is known stays known.
  const since = requests.findLast((request) => request.kind === 'survey')?.position ?? -1;
  const evidence = new Evidence(
    journal.calls.filter((call) => call.position > since),
    journal.tools,
  );
  const topics = topicsOf(requests);
  const callsMade = journal.calls.filter((call) => call.position > journal.lastAnswer).length;
  const exhausted = callsMade >= maxCallsPerAnswer;

  const next = exhausted ? undefined : nextCalls(waiting, evidence, topics);
  if (next === undefined) return { text: answer(waiting, evidence, topics), calls: [] };
  return { text: [...remarks(journal, requests), next.text].join(' '), calls: next.calls };
}

function nextCalls(waiting: Request[], evidence: Evidence, topics: Topic[]): Decision | undefined {
  const open = (steps: Step[]) => steps.filter((step) => evidence.isOpen(step));
  if (wantsReport(waiting)) {
    for (const phase of surveyPhases(evidence, topics)) {
      const calls = open(phase.steps);
      if (calls.length > 0) return { text: phase.text, calls };
    }
    const calls = open([writeStep(renderReport(evidence, topics))]);
    if (calls.length > 0) return { text: 'Now I know enough: I write the report.', calls };
  }
  for (const request of waiting) {
    if (request.kind !== 'question') continue;
    const calls = open(planAnswer(request.text).steps);
    if (calls.length > 0) return { text: 'I look that up.', calls };
  }
  return undefined;
}

/** What has just happened and deserves a word before going on. */
function remarks(journal: Journal, requests: Request[]): string[] {
  const said: string[] = [];
  if (journal.calls.length === 0 && journal.lastAnswer < 0) {
    said.push('I am the offline model: I decide from the tool results, so the figures are real.');
  }
  const lastCalls = journal.calls.filter((call) => call.position === journal.calls.at(-1)?.position);
  const lost = lastCalls.find(isOutcomeUnknown);
  if (lost !== undefined) {
    const why = lost.name === 'write' ? 'Writing gives the same file' : 'The command only reads';
    said.push(`The outcome of ${lost.name} is unknown: its worker died. ${why}, so I can do it again.`);
  }
  // A message that came in while the survey was going on stands after the last results.
  const since = journal.calls.at(-1)?.position ?? journal.length;
  for (const request of requests) {
    if (request.kind === 'focus' && request.position > since) {
      said.push(`The report gets a section about ${topicTitle(request.topic).toLowerCase()}, as you ask.`);
    }
  }
  return said;
}

function answer(waiting: Request[], evidence: Evidence, topics: Topic[]): string {
  const parts: string[] = [];
  if (wantsReport(waiting)) parts.push(summary(evidence, topics));
  for (const request of waiting) {
    if (request.kind === 'question') parts.push(planAnswer(request.text).answer(evidence));
  }
  return parts.join('\n\n') || 'There is nothing to do. Ask for a survey of the folder, or about its files.';
}

function summary(evidence: Evidence, topics: Topic[]): string {
  const report = writeStep(renderReport(evidence, topics));
  const counts = readCounts(evidence);
  const written = evidence.of(report);
  const lines = [
    written === undefined
      ? `The report could not be written: ${evidence.failureOf(report) ?? 'there is no write tool'}`
      : `The report is in ${reportPath}.`,
  ];
  if (counts === undefined) lines.push('The files could not be counted.');
  else if (counts.all.files === 0) lines.push('The folder has no files.');
  else {
    const main = counts.types[0];
    const most = main === undefined ? '' : `, mostly ${main.name}`;
    lines.push(`${counts.name} has ${count(counts.all.files, 'file')} with ${count(counts.all.lines, 'line')}${most}.`);
  }
  if (topics.length > 0) lines.push(`It has the section you asked for: ${joined(topics.map(topicTitle))}.`);
  return lines.join(' ');
}

function wantsReport(waiting: Request[]): boolean {
  return waiting.some((request) => request.kind !== 'question');
}

function topicsOf(requests: Request[]): Topic[] {
  const words = requests.flatMap((request) => (request.kind === 'focus' ? [request.topic.word] : []));
  return [...new Set(words)].slice(0, 8).map((word) => ({ word }));
}
