import { untilTemporalAnswers } from '../../src/cli/dev-server.ts';
import { bundleTestWorkflows, removeTestBundle } from './bundle.ts';
import { startTemporalServer } from './temporal-server.ts';

/**
 * What the whole suite shares: one Temporal server, whose address is in EVERTURN_TEST_TEMPORAL, and one workflow bundle,
 * whose path is in EVERTURN_TEST_BUNDLE. With TEMPORAL_ADDRESS set, that server is used and none is started. A server
 * that was started ends with jest, even when jest is killed.
 */
export default async function globalSetup(): Promise<void> {
  const [server, bundle] = await Promise.all([sharedServer(), bundleTestWorkflows().catch(reportBrokenBundle)]);
  process.env.EVERTURN_TEST_TEMPORAL = server.address;
  process.env.EVERTURN_TEST_BUNDLE = bundle ?? '';
  globalThis.everturnSuite = {
    async end() {
      await Promise.all([server.stop(), bundle && removeTestBundle(bundle)]);
    },
  };
}

/** The tests that need the bundle fail then, each by itself; the others tell what they would have told. */
function reportBrokenBundle(error: unknown): undefined {
  process.stderr.write(`The workflow bundle cannot be built, so every test with a worker will fail: ${error}\n`);
}

async function sharedServer(): Promise<{ address: string; stop(): Promise<void> }> {
  const address = process.env.TEMPORAL_ADDRESS;
  if (!address) return startTemporalServer();
  await untilTemporalAnswers(address, 30_000);
  return { address, stop: async () => undefined };
}

declare global {
  /** Set by the global setup for the global teardown, which jest runs in the same process. */
  var everturnSuite: { end(): Promise<void> } | undefined;
}
