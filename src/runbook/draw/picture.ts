import { edgeId, type Workflow } from '../model.ts'

/** What all forms of a drawing show. */
export interface Picture {
  readonly name: string
  readonly nodes: readonly PictureNode[]
  readonly edges: readonly PictureEdge[]
}

interface PictureNode {
  readonly id: string
  readonly type: string
  /** Of the run that is drawn. */
  readonly status?: string
}

interface PictureEdge {
  /** Indexes of nodes. */
  readonly from: number
  readonly to: number
  readonly label: string
  readonly state?: string
}

/** The part of a report that a drawing shows. */
export interface Overlay {
  readonly nodes: readonly { readonly id: string; readonly status: string }[]
  readonly edges: readonly { readonly from: string; readonly to: string; readonly state: string }[]
}

/** Edges with unknown ends are left out. */
export function pictureOf({ name, nodes, edges }: Workflow, report?: Overlay): Picture {
  const indexes = new Map(nodes.map(({ id, index }) => [id, index]))
  const statuses = new Map(report?.nodes.map(({ id, status }) => [id, status]))
  const states = new Map(report?.edges.map((edge) => [edgeId(edge), edge.state]))
  return {
    name,
    nodes: nodes.map(({ id, type }) => {
      const status = statuses.get(id)
      return { id, type, ...(status !== undefined && { status }) }
    }),
    edges: edges.flatMap((edge) => {
      const [from, to, state] = [indexes.get(edge.from), indexes.get(edge.to), states.get(edgeId(edge))]
      if (from === undefined || to === undefined) return []
      const { condition, when, on } = edge
      const label = [on === 'success' ? '' : on, condition?.range.text.replace(/^"(.*)"$/s, '$1'), when?.range.text]
      return [{ from, to, label: label.filter(Boolean).join(', '), ...(state !== undefined && { state }) }]
    }),
  }
}

/** Colours of statuses, with enough contrast to black text. */
export const COLORS: Readonly<Record<string, string>> = {
  succeeded: '#b7e4c7',
  simulated: '#d8f3dc',
  failed: '#ffb3b3',
  cancelled: '#ffd6a5',
  skipped: '#e9ecef',
  unreached: '#f8f9fa',
  not_run: '#f8f9fa',
}
