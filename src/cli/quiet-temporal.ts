import { DefaultLogger, makeTelemetryFilterString, Runtime } from '@temporalio/worker';

/**
 * Temporal's own log lines, on stderr: errors alone, or warnings too. It leaves Ctrl-C and SIGTERM to the command. Where
 * this process has a Temporal runtime already, that one stays as it is.
 */
export function quietTemporal(verbose: boolean): void {
  const level = verbose ? 'WARN' : 'ERROR';
  try {
    Runtime.install({
      logger: new DefaultLogger(level),
      telemetryOptions: { logging: { filter: makeTelemetryFilterString({ core: level, other: 'ERROR' }) } },
      shutdownSignals: [],
    });
  } catch (error) {
    if (!(error instanceof Error && error.name === 'IllegalStateError')) throw error;
  }
}
