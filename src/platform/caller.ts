import type { User } from './model.ts'

/** Who asks, by the session that the request brought. */
export interface Caller {
  user: User
  /** SHA-256 of the session's token. */
  tokenHash: string
}

/** Where the records of a project are: every query names both. */
export interface ProjectScope {
  organizationId: number
  projectId: number
}
