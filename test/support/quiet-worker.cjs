// Stands in for '@temporalio/worker' in tests: the same module, its logs cut down to errors. Tests kill servers and
// workers on purpose, and each would otherwise fill pages with warnings. Set EVERTURN_LOG to see them. A test file that
// never imports the worker does not pay for loading it, which a setup file would make it do.
const worker = require('@temporalio/worker/lib/index.js');

worker.Runtime.install({
  logger: new worker.DefaultLogger('ERROR'),
  telemetryOptions: { logging: { filter: worker.makeTelemetryFilterString({ core: 'ERROR', other: 'ERROR' }) } },
});

module.exports = worker;
