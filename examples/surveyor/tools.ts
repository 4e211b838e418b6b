import type { Tool } from 'everturn';
import { bashTool } from './tools/bash.ts';
import { listTool } from './tools/list.ts';
import { readTool } from './tools/read.ts';
import { searchTool } from './tools/search.ts';
import { writeTool } from './tools/write.ts';
import { openWorkspace } from './workspace.ts';

export interface SurveyorFolders {
  /** The folder that is surveyed. list, read, search and bash work in it. */
  workspace: string;
  /** The folder that reports go to; it must be there. `write` works in it alone. */
  output: string;
}

/**
 * The surveyor's tools. list, read and search change nothing and write can be repeated, so a worker's death costs them
 * a second run; bash is entered once.
 * @throws Error when one of the folders is not there
 */
export function surveyorTools(folders: SurveyorFolders): Tool[] {
  const workspace = openWorkspace(folders.workspace);
  const output = openWorkspace(folders.output);
  return [listTool(workspace), readTool(workspace), searchTool(workspace), writeTool(output), bashTool(workspace)];
}
