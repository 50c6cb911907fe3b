import { join } from 'node:path'

/** How a client reaches the tool server: a program to start, or an address. */
export type Connection = { command: string; args: string[] } | { url: string; keyed: boolean }

/** Where a client keeps its tool servers, and how it writes one down. */
export interface McpClient {
  title: string
  file: (place: Place) => string
  /** The key of the file that holds the servers by name. */
  section: 'mcpServers' | 'servers'
  /** Undefined when the client knows no such connection. */
  entry: (connection: Connection) => object | undefined
}

/** The folders that configuration files lie in. */
export interface Place {
  cwd: string
  home: string
  /** Of the user's applications: `~/.config`, `~/Library/Application Support`, `%APPDATA%`. */
  applications: string
}

/** The key stays in the environment: the file only names the variable, each client in its own way. */
const headers = (variable: string) => ({ headers: { Authorization: `Bearer ${variable}` } })

const typed =
  (variable: string) =>
  (connection: Connection): object =>
    'command' in connection
      ? { type: 'stdio', ...connection }
      : { type: 'http', url: connection.url, ...(connection.keyed && headers(variable)) }

/** Its key for the address has a name of its own. */
const named =
  (key: string, variable: string) =>
  (connection: Connection): object =>
    'command' in connection ? connection : { [key]: connection.url, ...(connection.keyed && headers(variable)) }

export const MCP_CLIENTS = {
  claude: {
    title: 'Claude Code, in this project',
    file: ({ cwd }) => join(cwd, '.mcp.json'),
    section: 'mcpServers',
    entry: typed('${MEM_API_KEY}'),
  },
  'claude-desktop': {
    title: 'Claude Desktop',
    file: ({ applications }) => join(applications, 'Claude', 'claude_desktop_config.json'),
    section: 'mcpServers',
    entry: (connection) => ('command' in connection ? connection : undefined),
  },
  cursor: {
    title: 'Cursor',
    file: ({ home }) => join(home, '.cursor', 'mcp.json'),
    section: 'mcpServers',
    entry: named('url', '${env:MEM_API_KEY}'),
  },
  vscode: {
    title: 'VS Code, in this project',
    file: ({ cwd }) => join(cwd, '.vscode', 'mcp.json'),
    section: 'servers',
    entry: typed('${env:MEM_API_KEY}'),
  },
  windsurf: {
    title: 'Windsurf',
    file: ({ home }) => join(home, '.codeium', 'windsurf', 'mcp_config.json'),
    section: 'mcpServers',
    entry: named('serverUrl', '${env:MEM_API_KEY}'),
  },
  gemini: {
    title: 'Gemini CLI',
    file: ({ home }) => join(home, '.gemini', 'settings.json'),
    section: 'mcpServers',
    entry: named('httpUrl', '$MEM_API_KEY'),
  },
} as const satisfies Record<string, McpClient>
