import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type DevServer, findTemporalBinary, startDevServer } from '../../src/cli/dev-server.ts';

/** A Temporal server of a test's own that suggests continue-as-new after so many events, not after thousands. */
export async function startRollingServer(events: number): Promise<Pick<DevServer, 'address' | 'stop'>> {
  const folder = await mkdtemp(join(tmpdir(), 'everturn-test-'));
  const binary = join(folder, 'temporal');
  const limit = `--dynamic-config-value limit.historyCount.suggestContinueAsNew=${events}`;
  await writeFile(binary, `#!/bin/sh\nexec "${findTemporalBinary()}" "$@" ${limit}\n`);
  await chmod(binary, 0o755);
  const server = await startDevServer({ binary });
  return {
    address: server.address,
    async stop() {
      await server.stop();
      await rm(folder, { recursive: true });
    },
  };
}
