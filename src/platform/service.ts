import type { Clock } from '../base/clock.ts'
import type { IdSource } from '../base/ids.ts'
import type { Database } from '../database/database.ts'
import { AgentSessions } from './agent-sessions.ts'
import { Flags } from './flags.ts'
import { Organizations } from './organizations.ts'
import { Passwords, type ScryptParameters } from './passwords.ts'
import type { Logger, RepositoryLinks, UserWatch } from './ports.ts'
import { Projects } from './projects.ts'
import { KeyRotation } from './sealing/rotation.ts'
import { Sealer } from './sealing/sealer.ts'
import { Sessions } from './sessions.ts'
import { Users } from './users.ts'
import { WorkItems } from './work-items.ts'

const NOBODY: UserWatch = { changing: async () => {}, changed: async () => {} }

export interface PlatformParts {
  database: Database
  keyFile: string
  /** How long a session lasts. */
  sessionTtlMs: number
  links: RepositoryLinks
  /** Who keeps users in mind, if anybody does. */
  userWatch?: UserWatch
  clock: Clock
  ids: IdSource
  log: Logger
  /** For new password hashes. */
  scrypt?: ScryptParameters | undefined
}

/** The platform that gateway and git-host stand on: its capabilities over one database. Contract: git-host.md 2. */
export class Platform {
  readonly database: Database
  readonly sealer: Sealer
  readonly keys: KeyRotation
  readonly organizations: Organizations
  readonly sessions: Sessions
  readonly users: Users
  readonly flags: Flags
  readonly projects: Projects
  readonly workItems: WorkItems
  readonly agentSessions: AgentSessions

  constructor({ database, keyFile, sessionTtlMs, links, userWatch = NOBODY, clock, ids, log, scrypt }: PlatformParts) {
    const passwords = new Passwords(scrypt)
    this.database = database
    this.sealer = new Sealer(keyFile, log)
    this.keys = new KeyRotation(database, this.sealer, log)
    this.organizations = new Organizations(database, clock, passwords, this.sealer)
    this.sessions = new Sessions(database, clock, passwords, sessionTtlMs)
    this.users = new Users(database, clock, passwords, this.sessions, userWatch)
    this.flags = new Flags(database)
    this.projects = new Projects(database, clock)
    this.workItems = new WorkItems(database, clock, links)
    this.agentSessions = new AgentSessions(database, clock, ids, links)
  }
}
