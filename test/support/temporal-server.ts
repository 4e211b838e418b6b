import { type DevServer, startDevServer } from '../../src/cli/dev-server.ts';

/**
 * A Temporal server of a test's own, for tests that kill it and start it again on the same file. All others share the
 * suite's server. Its errors are printed when EVERTURN_LOG is set.
 */
export async function startTemporalServer(options: { dbFile?: string; port?: number } = {}): Promise<DevServer> {
  const log = process.env.EVERTURN_LOG ? { log: (text: string) => process.stderr.write(text) } : {};
  return startDevServer({ ...options, ...log });
}
