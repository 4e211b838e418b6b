const kilobyte = 'x'.repeat(1_000);

export interface FloorActivities {
  model(turn: number): Promise<string>;
  tool(reply: string): Promise<string>;
}

export const floorActivities: FloorActivities = {
  model: async (turn) => `${turn} ${kilobyte}`,
  tool: async () => kilobyte,
};
