import '../faults/outside-jest.ts';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { bundleTestWorkflows, removeTestBundle } from '../support/bundle.ts';
import { startRollingServer } from '../support/rolling-server.ts';
import { startTemporalServer } from '../support/temporal-server.ts';
import type { RecordedHistory } from './fetch.ts';

// `npm run record-histories`: records a history of each kind, with the scripted model on a real server, for the version
// that package.json has. Histories of released versions stay as they are: they are what must replay for ever (I6).

/** One event a line, so that a difference can be read. */
function linesOf({ events }: RecordedHistory): string {
  return `{"events":[\n${events.map((event) => JSON.stringify(event)).join(',\n')}\n]}\n`;
}

const packageJson = JSON.parse(await readFile(new URL('../../package.json', import.meta.url), 'utf8'));
const folder = fileURLToPath(new URL(`./${packageJson.version}/`, import.meta.url));
// Loaded once the stand-in for jest is there.
const { recordHistories } = await import('./kinds.ts');
const bundle = await bundleTestWorkflows();
const servers = await Promise.all([startTemporalServer(), startRollingServer(60)]);
try {
  const [plain, rolling] = servers.map(({ address }) => ({ address, bundle }));
  const histories = await recordHistories({ plain: plain!, rolling: rolling! });
  await mkdir(folder, { recursive: true });
  for (const [name, history] of Object.entries(histories)) {
    await writeFile(`${folder}${name}.json`, linesOf(history));
    process.stdout.write(`${name}: ${linesOf(history).length} bytes\n`);
  }
} finally {
  await Promise.all(servers.map((server) => server.stop()));
  await removeTestBundle(bundle);
}
