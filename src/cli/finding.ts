/** What `mem doctor` found out about one thing. */
export interface Finding {
  check: string
  state: 'ok' | 'warning' | 'failed'
  message: string
  /** What to do about it. */
  fix?: string
}

export type Found = Omit<Finding, 'check'>

export const ok = (message: string): Found => ({ state: 'ok', message })
export const warning = (message: string, fix: string): Found => ({ state: 'warning', message, fix })
export const failed = (message: string, fix: string): Found => ({ state: 'failed', message, fix })
