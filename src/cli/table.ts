import type { Command } from './command.ts'

export interface Entry {
  readonly summary: string
  readonly load: () => Promise<Command>
}

const modules = {
  imprint: () => import('./commands/imprint.ts'),
  list: () => import('./commands/list.ts'),
  lookup: () => import('./commands/lookup.ts'),
  update: () => import('./commands/update.ts'),
  patch: () => import('./commands/patch.ts'),
  append: () => import('./commands/append.ts'),
  forget: () => import('./commands/forget.ts'),
  watermarks: () => import('./commands/watermarks.ts'),
  diff: () => import('./commands/diff.ts'),
  restore: () => import('./commands/restore.ts'),
  tags: () => import('./commands/tags.ts'),
  recall: () => import('./commands/recall.ts'),
  pins: () => import('./commands/pins.ts'),
  edges: () => import('./commands/edges.ts'),
  graph: () => import('./commands/graph.ts'),
  workspaces: () => import('./commands/workspaces.ts'),
  collections: () => import('./commands/collections.ts'),
  agents: () => import('./commands/agents.ts'),
  ledger: () => import('./commands/ledger.ts'),
  config: () => import('./commands/config.ts'),
  migrate: () => import('./commands/migrate.ts'),
  backup: () => import('./commands/backup.ts'),
  doctor: () => import('./commands/doctor.ts'),
  ledgerVerify: () => import('./commands/ledger-verify.ts'),
  health: () => import('./commands/health.ts'),
  serve: () => import('./commands/serve.ts'),
  mcp: () => import('./commands/mcp.ts'),
  mcpInstall: () => import('./commands/mcp-install.ts'),
  initCert: () => import('./commands/init-cert.ts'),
  runbook: () => import('./commands/runbook.ts'),
  workflow: () => import('./commands/workflow.ts'),
  version: () => import('./commands/version.ts'),
  completion: () => import('./commands/completion.ts'),
}

/** One export of a module, loaded when the command runs and not before. */
const entry = <Name extends string>(
  summary: string,
  load: () => Promise<Readonly<Record<Name, Command>>>,
  name: Name,
): Entry => ({ summary, load: async () => (await load())[name] })

/** What `mem --help` says of a noun whose verbs are commands. */
export const NOUNS: Readonly<Record<string, string>> = {
  tags: 'Set and delete tags of a Memory',
  pin: 'Keep queries for later',
  graph: 'Draw a workflow; figures of the graph of Memories',
  nodes: 'The types of nodes a workflow is made of',
  workflow: 'Begin a workflow',
  workspaces: 'Make, show, change and delete workspaces',
  collections: 'Make, list and delete collections',
  agents: 'Register, list and deactivate agents',
  ledger: 'Read the audit ledger, prove that it is whole',
  migrate: 'Bring what is stored to other models',
  backup: 'Copy the data, bring a copy back',
}

/** Every command: its words, in the section of `mem --help` where it stands. */
export const SECTIONS: Readonly<Record<string, Readonly<Record<string, Entry>>>> = {
  'Memories:': {
    imprint: entry('Remember a text', modules.imprint, 'imprint'),
    list: entry('List Memories, the newest first', modules.list, 'list'),
    lookup: entry('Show a Memory', modules.lookup, 'lookup'),
    update: entry('Replace its content', modules.update, 'update'),
    patch: entry('Replace strings in it', modules.patch, 'patch'),
    append: entry('Add to its end', modules.append, 'append'),
    forget: entry('Erase it', modules.forget, 'forget'),
    watermarks: entry('List its versions', modules.watermarks, 'watermarks'),
    diff: entry('Compare two versions', modules.diff, 'diff'),
    restore: entry('Bring an old version back', modules.restore, 'restore'),
    'tags set': entry('Set a tag', modules.tags, 'set'),
    'tags delete': entry('Delete a tag', modules.tags, 'remove'),
  },
  'Recall:': {
    recall: entry('Find Memories by what they say', modules.recall, 'recall'),
    'pin create': entry('Keep a query', modules.pins, 'create'),
    'pin list': entry('List kept queries', modules.pins, 'list'),
    'pin delete': entry('Delete a kept query', modules.pins, 'remove'),
  },
  'Graph:': {
    link: entry('Join two Memories by an Edge', modules.edges, 'link'),
    'link-batch': entry('Make many Edges', modules.edges, 'linkBatch'),
    unlink: entry('Remove an Edge', modules.edges, 'unlink'),
    neighbors: entry('List what a Memory is linked with', modules.graph, 'neighbors'),
    traverse: entry('Walk along Edges', modules.graph, 'traverse'),
    'graph stats': entry('Count Memories and Edges', modules.graph, 'stats'),
  },
  'Workspaces, agents, ledger:': {
    'workspaces list': entry('List workspaces', modules.workspaces, 'list'),
    'workspaces create': entry('Make a workspace', modules.workspaces, 'create'),
    'workspaces show': entry('Show a workspace', modules.workspaces, 'show'),
    'workspaces update': entry('Change a workspace', modules.workspaces, 'update'),
    'workspaces delete': entry('Delete an empty workspace', modules.workspaces, 'remove'),
    'collections list': entry('List collections', modules.collections, 'list'),
    'collections create': entry('Make a collection', modules.collections, 'create'),
    'collections delete': entry('Delete an empty collection', modules.collections, 'remove'),
    'agents list': entry('List agents', modules.agents, 'list'),
    'agents show': entry('Show an agent', modules.agents, 'show'),
    'agents register': entry('Register an agent, or change its profile', modules.agents, 'register'),
    'agents deactivate': entry('Deactivate an agent', modules.agents, 'deactivate'),
    'ledger list': entry('List ledger entries', modules.ledger, 'list'),
    'ledger verify': entry('Prove that the ledger is whole', modules.ledgerVerify, 'verify'),
  },
  'Runbooks:': {
    run: entry('Run a workflow', modules.runbook, 'run'),
    validate: entry('Check workflows without running them', modules.runbook, 'validate'),
    plan: entry('Show what a run would do', modules.runbook, 'plan'),
    graph: entry('Draw a workflow', modules.runbook, 'drawing'),
    'nodes list': entry('List the types of nodes', modules.runbook, 'list'),
    'nodes show': entry('Show a type: its attributes and its output', modules.runbook, 'show'),
    'workflow new': entry('Write a first workflow to a file', modules.workflow, 'create'),
  },
  'Server:': {
    serve: entry('Start the server', modules.serve, 'serve'),
    mcp: entry('Serve the tools to an agent', modules.mcp, 'mcp'),
    'mcp install': entry('Connect an agent: write its configuration', modules.mcpInstall, 'mcpInstall'),
    'init-cert': entry('Make a self-signed certificate', modules.initCert, 'initCert'),
    'print-config': entry('Show the configuration in force', modules.config, 'printConfig'),
    'check-config': entry('Test the configuration', modules.config, 'checkConfig'),
    doctor: entry('Find out what is wrong', modules.doctor, 'doctor'),
    'backup create': entry('Copy the data while the server runs', modules.backup, 'create'),
    'backup restore': entry('Bring a copy back', modules.backup, 'restore'),
    'migrate embeddings': entry('Embed everything with the current model', modules.migrate, 'embeddings'),
    health: entry('Ask whether the server lives', modules.health, 'health'),
    ready: entry('Ask whether its stores are up', modules.health, 'ready'),
  },
  'Other:': {
    version: entry('Print the version', modules.version, 'version'),
    completion: entry('Print a completion script for the shell', modules.completion, 'completion'),
  },
}
