import { proxyActivities } from '@temporalio/workflow';
import type { FloorActivities } from './activities.ts';

const { model, tool } = proxyActivities<FloorActivities>({ startToCloseTimeout: '1 minute' });

/** The limit that a turn on Temporal can reach: two activities, nothing kept but their results. */
export async function floorSession(turns: number): Promise<number> {
  let answered = 0;
  for (let turn = 0; turn < turns; turn++) {
    const reply = await model(turn);
    if (turn < turns - 1) await tool(reply);
    answered += 1;
  }
  return answered;
}
