import { AgentClient } from 'everturn/client';

const [prompt = 'Order two lamps, if there are enough.', sessionId = 'shop-1'] = process.argv.slice(2);

const client = await AgentClient.connect({ store: '.everturn/store' });
const session = client.session(sessionId, { agent: 'shop' });
const { status, text, error } = await session.run(prompt);
console.log(error === undefined ? text : `${status}: ${error.message}`);
await client.close();
