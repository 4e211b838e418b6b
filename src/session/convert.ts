import type { AgentMessage, Message, TextContent } from '../common/messages.ts';

/** The roles that pi's harness adds; their shapes are pi's, read loosely since an application made them. */
interface LooseMessage {
  role: string;
  timestamp: number;
  [key: string]: unknown;
}

/**
 * The default convertToLlm: pi's harness conversion (pi-semantics §3.5). User, assistant and tool result messages pass as
 * they are (the same objects), the harness's own roles become user messages, all other roles are for people only.
 */
export function defaultConvertToLlm(messages: readonly AgentMessage[]): Message[] {
  return messages.flatMap((message) => {
    const { role } = message as LooseMessage;
    if (role === 'user' || role === 'assistant' || role === 'toolResult') return [message as Message];
    return converted(message as LooseMessage);
  });
}

function converted(message: LooseMessage): Message[] {
  switch (message.role) {
    case 'bashExecution':
      return message.excludeFromContext === true ? [] : [asUser(message, bashText(message))];
    case 'custom':
      return [asUser(message, message.content as string | TextContent[])];
    case 'branchSummary':
      return [
        asUser(
          message,
          summaryText('The following is a summary of a branch that this conversation came back from:', message, ''),
        ),
      ];
    case 'compactionSummary':
      return [
        asUser(
          message,
          summaryText(
            'The conversation history before this point was compacted into the following summary:',
            message,
            '\n',
          ),
        ),
      ];
    default:
      return [];
  }
}

function asUser(message: LooseMessage, content: string | TextContent[]): Message {
  const blocks = typeof content === 'string' ? [{ type: 'text' as const, text: content }] : content;
  return { role: 'user', content: blocks, timestamp: message.timestamp };
}

function summaryText(introduction: string, message: LooseMessage, beforeEnd: string): string {
  return `${introduction}\n\n<summary>\n${String(message.summary)}${beforeEnd}</summary>`;
}

function bashText(message: LooseMessage): string {
  const { exitCode } = message;
  const output = message.output ? `\`\`\`\n${String(message.output)}\n\`\`\`` : '(no output)';
  const failed = exitCode !== null && exitCode !== undefined && exitCode !== 0;
  const end = message.cancelled
    ? '\n\n(command cancelled)'
    : failed
      ? `\n\nCommand exited with code ${String(exitCode)}`
      : '';
  const cut =
    message.truncated && message.fullOutputPath
      ? `\n\n[Output truncated. Full output: ${String(message.fullOutputPath)}]`
      : '';
  return `Ran \`${String(message.command)}\`\n${output}${end}${cut}`;
}
