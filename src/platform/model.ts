import * as z from 'zod'

/** The records of the platform, and what callers send. Contract: git-host.md 2.2, 2.5. */

export const USER_ROLES = ['admin', 'member'] as const
export const MEMBER_ROLES = ['reader', 'developer', 'manager'] as const
export const ITEM_TYPES = ['feature', 'issue'] as const
export const ITEM_STATUSES = ['todo', 'in_progress', 'done'] as const
export const SESSION_KINDS = ['work', 'repair'] as const
export const SESSION_STATUSES = ['active', 'closed'] as const

export type MemberRole = (typeof MEMBER_ROLES)[number]
export type Permission = 'project:read' | 'project:write' | 'project:settings'
/** Who keeps the code of a project: a hosted repository that is linked, or somebody else. */
export type SourceControl = 'git_host' | 'external'

export interface Organization {
  id: number
  name: string
}

export interface User {
  id: number
  organization_id: number
  /** Lower-cased; unique among all organizations. */
  email: string
  display_name?: string
  role: (typeof USER_ROLES)[number]
  active: boolean
}

export interface Project {
  id: number
  name: string
  source_control?: SourceControl
  /** Those of the caller. */
  permissions: Permission[]
}

export interface Member {
  user_id: number
  role: MemberRole
}

export interface WorkItem {
  id: number
  type: (typeof ITEM_TYPES)[number]
  title: string
  description?: string
  status: (typeof ITEM_STATUSES)[number]
  branch?: string
  repository_link_id?: number
  /** Of the agent session that works on it. */
  session_id?: string
  completed_at?: string
}

export interface AgentSession {
  sid: number
  /** `session-` + ULID. */
  session_id: string
  user_id: number
  kind: (typeof SESSION_KINDS)[number]
  branch?: string
  repository_link_id?: number
  work_item_id?: number
  status: (typeof SESSION_STATUSES)[number]
}

export interface Flag {
  name: FlagName
  enabled: boolean
}

/** Every feature flag; off unless an organization's admin set it. */
export const FLAGS = ['feature_git_host'] as const
export type FlagName = (typeof FLAGS)[number]

/** Lengths are in characters: code points, not UTF-16 units. */
const characters = (max: number) =>
  z.string().refine((text) => text.length <= max || [...text].length <= max, `is longer than ${max} characters`)

const named = (max: number) => characters(max).min(1, 'must not be empty')

/** A field that may be empty; null and '' clear it. */
const clearable = <T extends z.ZodType>(schema: T) =>
  schema.nullable().transform((value) => (value === '' ? null : value))

const EMAIL_MAX = 254
const email = named(EMAIL_MAX)
  .regex(/^[^\s@]+@[^\s@]+$/, 'must be an e-mail address')
  .transform((text) => text.toLowerCase())

/** Long enough not to be guessed, short enough to be hashed at once. */
const password = characters(1024).refine((text) => [...text].length >= 12, 'must have 12 characters or more')

const id = z.int('must be a whole number').min(1, 'must be 1 or more')

export const loginRequest = z.strictObject({ email: characters(EMAIL_MAX), password: characters(1024) })

const userFields = {
  email,
  password,
  display_name: clearable(characters(200)).optional(),
  role: z.enum(USER_ROLES).optional(),
  active: z.boolean().optional(),
}
export const userRequest = z.strictObject(userFields)
export type UserRequest = z.infer<typeof userRequest>
export const userChanges = z.strictObject(userFields).partial()
export type UserChanges = z.infer<typeof userChanges>

export const organizationRequest = z.strictObject({ organization: named(200), email, password })
export type OrganizationRequest = z.infer<typeof organizationRequest>

export const flagRequest = z.strictObject({ enabled: z.boolean() })

const projectFields = { name: named(200), source_control: z.enum(['external']).nullable().optional() }
export const projectRequest = z.strictObject(projectFields)
export type ProjectRequest = z.infer<typeof projectRequest>
export const projectChanges = z.strictObject(projectFields).partial()
export type ProjectChanges = z.infer<typeof projectChanges>

export const memberRequest = z.strictObject({ role: z.enum(MEMBER_ROLES) })

const branch = clearable(characters(255)).optional()

const itemFields = {
  type: z.enum(ITEM_TYPES),
  title: named(500),
  description: clearable(characters(65_536)).optional(),
  status: z.enum(ITEM_STATUSES).optional(),
  branch,
  repository_link_id: id.nullable().optional(),
  session_id: clearable(characters(64)).optional(),
}
export const itemRequest = z.strictObject(itemFields)
export type ItemRequest = z.infer<typeof itemRequest>
export const itemChanges = z.strictObject(itemFields).partial()
export type ItemChanges = z.infer<typeof itemChanges>

export const sessionRequest = z.strictObject({
  kind: z.enum(SESSION_KINDS).optional(),
  branch,
  repository_link_id: id.nullable().optional(),
  work_item_id: id.nullable().optional(),
})
export type SessionRequest = z.infer<typeof sessionRequest>
export const sessionChanges = z.strictObject({ status: z.enum(SESSION_STATUSES) })
