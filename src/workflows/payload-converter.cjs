// Loaded by workers, clients and the workflow sandbox alike, hence CommonJS.
const { defaultPayloadConverter } = require('@temporalio/common');

/**
 * The default converter, but a payload that cannot be read becomes a value that says so. Thrown inside a workflow task
 * it would fail that task over and over: one broken signal from outside would stop the session for good.
 * @type {import('@temporalio/common').PayloadConverter}
 */
const payloadConverter = {
  toPayload: (value) => defaultPayloadConverter.toPayload(value),
  fromPayload(payload) {
    try {
      return defaultPayloadConverter.fromPayload(payload);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      return /** @type {never} */ ({ malformed: reason });
    }
  },
};

module.exports = { payloadConverter };
