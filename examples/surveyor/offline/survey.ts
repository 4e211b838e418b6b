import type { Evidence, Step } from './evidence.ts';
import { type Listing, readCounts, readListing } from './facts.ts';
import { count, joined } from './format.ts';
import { topicTitle } from './report.ts';
import type { Topic } from './requests.ts';
import {
  countStep,
  exportsStep,
  listStep,
  lookStep,
  readStep,
  testCasesStep,
  todoStep,
  topicFilesStep,
  topicLinesStep,
  weighStep,
} from './steps.ts';

/** Calls that are made together, and what the model says with them. */
export interface Phase {
  text: string;
  steps: Step[];
}

const maxFoldersOpened = 6;
const maxFilesRead = 4;
/** Files that tell what a folder is, the most telling first. */
const telling = [
  /^package\.json$/,
  /^readme(\.\w+)?$/i,
  /^(Cargo\.toml|pyproject\.toml|go\.mod|pom\.xml|composer\.json|Gemfile|build\.gradle)$/,
  /^(Makefile|Dockerfile|docker-compose\.ya?ml)$/,
];
const code = new Set(['ts', 'tsx', 'js', 'jsx', 'mjs', 'cjs', 'py', 'go', 'rs']);
const withExports = new Set(['ts', 'tsx', 'js', 'jsx', 'mjs']);

/** The phases of a survey in their order. Later ones depend on what earlier ones found, so they come one by one. */
export function* surveyPhases(evidence: Evidence, topics: readonly Topic[]): Generator<Phase> {
  yield { text: 'First I look at what is there.', steps: [lookStep] };

  const top = readListing(evidence.of(lookStep));
  if (top !== undefined) yield overview(top);
  yield { text: 'Next I count files, lines and bytes, by type and by folder.', steps: [countStep] };

  if (top?.notShown.includes('node_modules') === true) {
    yield {
      text: 'The dependencies are in node_modules. I weigh them package by package, which takes a moment.',
      steps: [weighStep],
    };
  }
  const types = readCounts(evidence)?.types.map((type) => type.name);
  if (types === undefined || types.length > 0) yield searches(types);

  for (const topic of topics) {
    const title = topicTitle(topic).toLowerCase();
    yield {
      text: `Now the section about ${title}: its files, and what they hold.`,
      steps: [topicFilesStep(topic), topicLinesStep(topic)],
    };
  }
}

function overview(top: Listing): Phase {
  const files = telling.flatMap((pattern) => top.files.filter(({ name, bytes }) => bytes > 0 && pattern.test(name)));
  const reads = files.slice(0, maxFilesRead).map(({ name }) => name);
  const folders = top.folders.filter((name) => !name.startsWith('.')).slice(0, maxFoldersOpened);
  const found = `There are ${count(top.folders.length, 'folder')} and ${count(top.files.length, 'file')} at the top.`;
  const open = reads.length > 0 ? ` I read ${joined(reads)} and open the folders.` : ' I open the folders.';
  return { text: found + open, steps: [...folders.map(listStep), ...reads.map(readStep)] };
}

/** Without a count every search is worth a try. */
function searches(types: string[] | undefined): Phase {
  const steps = [todoStep];
  if (types === undefined || types.some((type) => code.has(type))) steps.push(testCasesStep);
  if (types === undefined || types.some((type) => withExports.has(type))) steps.push(exportsStep);
  const most = types === undefined ? '' : `Most lines are in ${types[0]} files. `;
  const what = steps.length === 1 ? 'open work' : 'open work, tests and what is exported';
  return { text: `${most}I search for ${what}.`, steps };
}
