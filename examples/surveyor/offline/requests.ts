import type { UserRecord } from './journal.ts';

/** A subject that the report gets a section about. */
export interface Topic {
  /** 'tests' and 'docs' are known; any other word is searched for. */
  word: string;
}

export type Request = { position: number } & (
  | { kind: 'survey' }
  | { kind: 'focus'; topic: Topic }
  | { kind: 'question'; text: string }
);

const surveyWords = /\b(survey|report|explore|overview|analy[sz]e|inventory)\b/i;
const focusWords = /\b(focus|section|add|include|also|concentrate|emphasi[sz]e|more (about|on)|look (at|into))\b/i;
const questionWords = /^\s*(what|which|how|who|where|when|why|is|are|does|do|can|name|show|tell|count)\b/i;

/** What each user message asks for, in order. The first one asks for a survey unless it is plainly a question. */
export function readRequests(users: readonly UserRecord[]): Request[] {
  return users.map(({ text, position }, index): Request => {
    const isQuestion = text.trim().endsWith('?') || questionWords.test(text);
    if (index === 0) {
      return isQuestion && !surveyWords.test(text)
        ? { kind: 'question', text, position }
        : { kind: 'survey', position };
    }
    if (/\b(again|new|another|fresh)\b/i.test(text) && surveyWords.test(text)) return { kind: 'survey', position };
    const topic = focusWords.test(text) || !isQuestion ? topicOf(text) : undefined;
    if (topic !== undefined) return { kind: 'focus', topic, position };
    return { kind: 'question', text, position };
  });
}

const idle = new Set(
  (
    'about above added adding after again also anything because before called could defined describe detail details every explain focus ' +
    'find folder found from give have here include instead into just know like look main make many more most much need only other ' +
    'over part parts please project report section should show some sections take tell than thank thanks that them then ' +
    'there these they thing this those through used uses what when where which while will with would write your'
  ).split(' '),
);

function topicOf(text: string): Topic | undefined {
  if (/\b(tests?|testing|specs?)\b/i.test(text)) return { word: 'tests' };
  if (/\b(docs?|documentation|readmes?)\b/i.test(text)) return { word: 'docs' };
  return keywordsOf(text)[0];
}

/** Words that may be worth a search, the most telling first. They are safe inside a shell command and a pattern. */
export function keywordsOf(text: string): Topic[] {
  const words = text.toLowerCase().match(/[a-z][a-z0-9_]{3,30}/g) ?? [];
  const telling = words.filter((word) => !idle.has(word));
  return [...new Set(telling)].sort((left, right) => right.length - left.length).map((word) => ({ word }));
}
