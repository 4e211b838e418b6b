import { definePolicy } from 'everturn/workflows';

export * from 'everturn/workflows';

const shouldStopAfterTurn = () => false;
const prepareNextTurn = () => undefined;

definePolicy('shouldStopAfterTurn', { shouldStopAfterTurn });
definePolicy('prepareNextTurn', { prepareNextTurn });
definePolicy('all', { shouldStopAfterTurn, prepareNextTurn });
