-- Governed agent runs. scope is kind and id, percent-encoded and joined by "/"; times are epoch milliseconds, booleans 0/1.
-- Columns hold what is searched for or counted; body is the record as JSON.

CREATE TABLE kernel_meta (
  name TEXT COLLATE "C" PRIMARY KEY,
  value TEXT NOT NULL
);

-- The last number given out under a name.
CREATE TABLE kernel_counters (
  scope TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  value BIGINT NOT NULL,
  PRIMARY KEY (scope, name)
);

-- Writes that were done under an idempotency key, of which only the SHA-256 is kept.
CREATE TABLE kernel_keys (
  scope TEXT COLLATE "C" NOT NULL,
  route TEXT COLLATE "C" NOT NULL,
  key_hash TEXT COLLATE "C" NOT NULL,
  fingerprint TEXT NOT NULL,
  record_id TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (scope, route, key_hash)
);

-- precedence is the negative priority, recency the negative time of the last change: lists ascend.
CREATE TABLE kernel_objectives (
  scope TEXT COLLATE "C" NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  revision BIGINT NOT NULL,
  status TEXT NOT NULL,
  owner_type TEXT NOT NULL,
  owner_id TEXT COLLATE "C" NOT NULL,
  precedence BIGINT NOT NULL,
  recency BIGINT NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (scope, id)
);
CREATE INDEX kernel_objectives_in_order ON kernel_objectives (scope, precedence, recency, id);
CREATE INDEX kernel_objectives_by_owner ON kernel_objectives (scope, owner_type, owner_id, precedence, recency, id);
CREATE INDEX kernel_objectives_by_status ON kernel_objectives (scope, status, precedence, recency, id);

CREATE TABLE kernel_projects (
  scope TEXT COLLATE "C" NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  revision BIGINT NOT NULL,
  status TEXT NOT NULL,
  owner_type TEXT NOT NULL,
  owner_id TEXT COLLATE "C" NOT NULL,
  recency BIGINT NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (scope, id)
);
CREATE INDEX kernel_projects_in_order ON kernel_projects (scope, recency, id);
CREATE INDEX kernel_projects_by_owner ON kernel_projects (scope, owner_type, owner_id, recency, id);
CREATE INDEX kernel_projects_by_status ON kernel_projects (scope, status, recency, id);

CREATE TABLE kernel_project_objectives (
  scope TEXT COLLATE "C" NOT NULL,
  objective_id TEXT COLLATE "C" NOT NULL,
  project_id TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (scope, objective_id, project_id),
  FOREIGN KEY (scope, project_id) REFERENCES kernel_projects (scope, id)
);
CREATE INDEX kernel_project_objectives_by_project ON kernel_project_objectives (scope, project_id);

-- rank: minutes of entering the queue, less the priority. due: queued, and available_at is known to be past.
-- deadline: the greatest number for none. wake_*: what a waiting, sleeping or so paused run waits for; reference '' is any.
CREATE TABLE kernel_runs (
  scope TEXT COLLATE "C" NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  revision BIGINT NOT NULL,
  kind TEXT NOT NULL,
  status TEXT NOT NULL,
  source TEXT NOT NULL,
  owner_type TEXT NOT NULL,
  owner_id TEXT COLLATE "C" NOT NULL,
  objective_id TEXT COLLATE "C",
  project_id TEXT COLLATE "C",
  parent_id TEXT COLLATE "C",
  root_id TEXT COLLATE "C" NOT NULL,
  agent_id TEXT COLLATE "C",
  precedence BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  rank BIGINT NOT NULL,
  deadline BIGINT NOT NULL,
  queue_entered_at BIGINT NOT NULL,
  available_at BIGINT NOT NULL,
  due INTEGER NOT NULL,
  wake_type TEXT,
  wake_reference TEXT COLLATE "C",
  wake_at BIGINT,
  escalate_at BIGINT,
  sought TEXT NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (scope, id)
);
CREATE INDEX kernel_runs_to_claim ON kernel_runs (scope, kind, rank, deadline, queue_entered_at, id)
  WHERE status = 'queued' AND due = 1;
CREATE INDEX kernel_runs_not_due ON kernel_runs (scope, available_at, id) WHERE status = 'queued' AND due = 0;
CREATE INDEX kernel_runs_by_wake ON kernel_runs (scope, wake_type, wake_reference, id) WHERE wake_type IS NOT NULL;
CREATE INDEX kernel_runs_by_timer ON kernel_runs (wake_at) WHERE wake_type = 'timer';
CREATE INDEX kernel_runs_by_scope_timer ON kernel_runs (scope, wake_at) WHERE wake_type = 'timer';
CREATE INDEX kernel_runs_to_escalate ON kernel_runs (escalate_at) WHERE escalate_at IS NOT NULL;
CREATE INDEX kernel_runs_in_order ON kernel_runs (scope, precedence, created_at, id);
CREATE INDEX kernel_runs_by_age ON kernel_runs (scope, created_at, id);
CREATE INDEX kernel_runs_by_status ON kernel_runs (scope, status, precedence, created_at, id);
CREATE INDEX kernel_runs_by_objective ON kernel_runs (scope, objective_id, precedence, created_at, id)
  WHERE objective_id IS NOT NULL;
CREATE INDEX kernel_runs_by_objective_age ON kernel_runs (scope, objective_id, created_at, id)
  WHERE objective_id IS NOT NULL;
CREATE INDEX kernel_runs_by_project ON kernel_runs (scope, project_id, precedence, created_at, id)
  WHERE project_id IS NOT NULL;
CREATE INDEX kernel_runs_by_parent ON kernel_runs (scope, parent_id, precedence, created_at, id)
  WHERE parent_id IS NOT NULL;
CREATE INDEX kernel_runs_by_root ON kernel_runs (scope, root_id, precedence, created_at, id);
CREATE INDEX kernel_runs_by_agent ON kernel_runs (scope, agent_id, precedence, created_at, id)
  WHERE agent_id IS NOT NULL;
CREATE INDEX kernel_runs_by_owner ON kernel_runs (scope, owner_type, owner_id, precedence, created_at, id);

-- fencing_token only grows. held: takes up slots; an owner without it let the lease run out.
CREATE TABLE kernel_run_leases (
  scope TEXT COLLATE "C" NOT NULL,
  run_id TEXT COLLATE "C" NOT NULL,
  owner TEXT,
  expires_at BIGINT,
  fencing_token BIGINT NOT NULL,
  claimed_at BIGINT NOT NULL,
  held INTEGER NOT NULL,
  PRIMARY KEY (scope, run_id),
  FOREIGN KEY (scope, run_id) REFERENCES kernel_runs (scope, id)
);
CREATE INDEX kernel_run_leases_to_end ON kernel_run_leases (scope, expires_at) WHERE held = 1;
CREATE INDEX kernel_run_leases_ended ON kernel_run_leases (scope, run_id) WHERE owner IS NOT NULL AND held = 0;

-- What is bounded: runs of an agent, owner, objective or concurrency key, units of an objective's resource.
-- No capacity is no bound of its own; closed takes no more runs; an agent takes no new ones with max_queued in the queue.
CREATE TABLE kernel_slots (
  scope TEXT COLLATE "C" NOT NULL,
  kind TEXT NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  active BIGINT NOT NULL,
  capacity BIGINT,
  max_queued BIGINT,
  closed INTEGER NOT NULL,
  PRIMARY KEY (scope, kind, name)
);

-- What a run takes up while it is worked on.
CREATE TABLE kernel_run_slots (
  scope TEXT COLLATE "C" NOT NULL,
  run_id TEXT COLLATE "C" NOT NULL,
  kind TEXT NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  amount BIGINT NOT NULL,
  PRIMARY KEY (scope, run_id, kind, name),
  FOREIGN KEY (scope, run_id) REFERENCES kernel_runs (scope, id)
);

-- A signal wakes a run once.
CREATE TABLE kernel_run_signals (
  scope TEXT COLLATE "C" NOT NULL,
  run_id TEXT COLLATE "C" NOT NULL,
  signal_id TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (scope, run_id, signal_id),
  FOREIGN KEY (scope, run_id) REFERENCES kernel_runs (scope, id)
);

-- Runs at their end whose descendants are still to be canceled.
CREATE TABLE kernel_run_cascades (
  scope TEXT COLLATE "C" NOT NULL,
  run_id TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (scope, run_id),
  FOREIGN KEY (scope, run_id) REFERENCES kernel_runs (scope, id)
);

-- outcome is what the model proposed; it is never shown.
CREATE TABLE kernel_turns (
  scope TEXT COLLATE "C" NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  revision BIGINT NOT NULL,
  run_id TEXT COLLATE "C" NOT NULL,
  sequence BIGINT NOT NULL,
  status TEXT NOT NULL,
  outcome TEXT,
  body TEXT NOT NULL,
  PRIMARY KEY (scope, id),
  UNIQUE (scope, run_id, sequence),
  FOREIGN KEY (scope, run_id) REFERENCES kernel_runs (scope, id)
);
CREATE UNIQUE INDEX kernel_turns_unfinished ON kernel_turns (scope, run_id) WHERE status = 'running';

CREATE TABLE kernel_dependency_groups (
  scope TEXT COLLATE "C" NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  revision BIGINT NOT NULL,
  run_id TEXT COLLATE "C" NOT NULL,
  status TEXT NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (scope, id),
  FOREIGN KEY (scope, run_id) REFERENCES kernel_runs (scope, id)
);
CREATE INDEX kernel_dependency_groups_by_run ON kernel_dependency_groups (scope, run_id, id);

CREATE TABLE kernel_dependencies (
  scope TEXT COLLATE "C" NOT NULL,
  group_id TEXT COLLATE "C" NOT NULL,
  child_id TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  status TEXT NOT NULL,
  PRIMARY KEY (scope, group_id, child_id),
  FOREIGN KEY (scope, group_id) REFERENCES kernel_dependency_groups (scope, id)
);
CREATE INDEX kernel_dependencies_by_child ON kernel_dependencies (scope, child_id);

CREATE TABLE kernel_requests (
  scope TEXT COLLATE "C" NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  revision BIGINT NOT NULL,
  kind TEXT NOT NULL,
  status TEXT NOT NULL,
  source_run_id TEXT COLLATE "C" NOT NULL,
  child_run_id TEXT COLLATE "C",
  requester TEXT COLLATE "C" NOT NULL,
  recipient TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (scope, id)
);
CREATE INDEX kernel_requests_in_order ON kernel_requests (scope, created_at, id);
CREATE INDEX kernel_requests_by_source ON kernel_requests (scope, source_run_id, created_at, id);
CREATE INDEX kernel_requests_by_child ON kernel_requests (scope, child_run_id) WHERE child_run_id IS NOT NULL;
CREATE INDEX kernel_requests_by_requester ON kernel_requests (scope, requester, created_at, id);
CREATE INDEX kernel_requests_by_recipient ON kernel_requests (scope, recipient, created_at, id);
CREATE INDEX kernel_requests_by_status ON kernel_requests (scope, status, created_at, id);

-- Runs that decide on a request as it stood at this revision; settled once their outcome was applied.
CREATE TABLE kernel_request_runs (
  scope TEXT COLLATE "C" NOT NULL,
  request_id TEXT COLLATE "C" NOT NULL,
  revision BIGINT NOT NULL,
  run_id TEXT COLLATE "C" NOT NULL,
  settled INTEGER NOT NULL,
  PRIMARY KEY (scope, request_id, revision),
  FOREIGN KEY (scope, request_id) REFERENCES kernel_requests (scope, id),
  FOREIGN KEY (scope, run_id) REFERENCES kernel_runs (scope, id)
);
CREATE UNIQUE INDEX kernel_request_runs_open ON kernel_request_runs (scope, run_id) WHERE settled = 0;

CREATE TABLE kernel_calls (
  scope TEXT COLLATE "C" NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  revision BIGINT NOT NULL,
  run_id TEXT COLLATE "C" NOT NULL,
  deployment_id TEXT COLLATE "C" NOT NULL,
  status TEXT NOT NULL,
  idempotency_key TEXT NOT NULL,
  external_digest TEXT,
  available_at BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (scope, id),
  UNIQUE (scope, run_id, idempotency_key),
  FOREIGN KEY (scope, run_id) REFERENCES kernel_runs (scope, id)
);
CREATE INDEX kernel_calls_to_claim ON kernel_calls (scope, status, available_at, id);
CREATE INDEX kernel_calls_in_order ON kernel_calls (scope, created_at, id);
CREATE INDEX kernel_calls_by_run ON kernel_calls (scope, run_id, created_at, id);
CREATE INDEX kernel_calls_by_deployment ON kernel_calls (scope, deployment_id, created_at, id);
CREATE UNIQUE INDEX kernel_calls_by_external_digest ON kernel_calls (scope, external_digest)
  WHERE external_digest IS NOT NULL AND status IN ('waiting_for_approval', 'ready', 'running', 'ambiguous', 'succeeded');

-- stopping: the run was canceled, and the worker should give up the call.
CREATE TABLE kernel_call_leases (
  scope TEXT COLLATE "C" NOT NULL,
  call_id TEXT COLLATE "C" NOT NULL,
  owner TEXT,
  expires_at BIGINT,
  fencing_token BIGINT NOT NULL,
  stopping INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (scope, call_id),
  FOREIGN KEY (scope, call_id) REFERENCES kernel_calls (scope, id)
);
CREATE INDEX kernel_call_leases_to_end ON kernel_call_leases (scope, expires_at) WHERE owner IS NOT NULL;

-- Each attempt: dispatched_at is written right before the request leaves.
CREATE TABLE kernel_call_journal (
  scope TEXT COLLATE "C" NOT NULL,
  call_id TEXT COLLATE "C" NOT NULL,
  attempt BIGINT NOT NULL,
  fencing_token BIGINT NOT NULL,
  claimed_at BIGINT NOT NULL,
  dispatched_at BIGINT,
  finished_at BIGINT,
  outcome TEXT,
  PRIMARY KEY (scope, call_id, attempt),
  FOREIGN KEY (scope, call_id) REFERENCES kernel_calls (scope, id)
);

CREATE TABLE kernel_approvals (
  scope TEXT COLLATE "C" NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  revision BIGINT NOT NULL,
  run_id TEXT COLLATE "C" NOT NULL,
  call_id TEXT COLLATE "C" NOT NULL,
  owner_type TEXT NOT NULL,
  owner_id TEXT COLLATE "C" NOT NULL,
  status TEXT NOT NULL,
  expires_at BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (scope, id),
  UNIQUE (scope, call_id),
  FOREIGN KEY (scope, call_id) REFERENCES kernel_calls (scope, id)
);
CREATE INDEX kernel_approvals_to_end ON kernel_approvals (expires_at) WHERE status = 'pending';
CREATE INDEX kernel_approvals_in_order ON kernel_approvals (scope, created_at, id);
CREATE INDEX kernel_approvals_by_status ON kernel_approvals (scope, status, created_at, id);
CREATE INDEX kernel_approvals_by_run ON kernel_approvals (scope, run_id, created_at, id);
CREATE INDEX kernel_approvals_by_owner ON kernel_approvals (scope, owner_type, owner_id, created_at, id);

-- position is the order of commits in the scope, sequence that of the stream. body is the event without its payload.
CREATE TABLE kernel_events (
  scope TEXT COLLATE "C" NOT NULL,
  position BIGINT NOT NULL,
  stream TEXT COLLATE "C" NOT NULL,
  sequence BIGINT NOT NULL,
  event_type TEXT NOT NULL,
  category TEXT NOT NULL,
  severity TEXT NOT NULL,
  visibility TEXT NOT NULL,
  run_id TEXT COLLATE "C",
  agent_id TEXT COLLATE "C",
  objective_id TEXT COLLATE "C",
  team_id TEXT COLLATE "C",
  project_id TEXT COLLATE "C",
  details TEXT,
  body TEXT NOT NULL,
  PRIMARY KEY (scope, position),
  UNIQUE (scope, stream, sequence)
);
CREATE INDEX kernel_events_by_type ON kernel_events (scope, event_type, position);
CREATE INDEX kernel_events_by_run ON kernel_events (scope, run_id, position) WHERE run_id IS NOT NULL;
CREATE INDEX kernel_events_by_agent ON kernel_events (scope, agent_id, position) WHERE agent_id IS NOT NULL;
CREATE INDEX kernel_events_by_objective ON kernel_events (scope, objective_id, position) WHERE objective_id IS NOT NULL;
CREATE INDEX kernel_events_by_team ON kernel_events (scope, team_id, position) WHERE team_id IS NOT NULL;
CREATE INDEX kernel_events_by_project ON kernel_events (scope, project_id, position) WHERE project_id IS NOT NULL;

CREATE TABLE kernel_event_conversations (
  scope TEXT COLLATE "C" NOT NULL,
  conversation_id TEXT COLLATE "C" NOT NULL,
  position BIGINT NOT NULL,
  PRIMARY KEY (scope, conversation_id, position),
  FOREIGN KEY (scope, position) REFERENCES kernel_events (scope, position)
);

-- A pool of workers in one scope; limits is JSON.
CREATE TABLE kernel_workers (
  scope TEXT COLLATE "C" NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  kind TEXT NOT NULL,
  run_kinds TEXT NOT NULL,
  concurrency BIGINT NOT NULL,
  active BIGINT NOT NULL,
  limits TEXT NOT NULL,
  last_seen_at BIGINT NOT NULL,
  PRIMARY KEY (scope, id)
);
CREATE INDEX kernel_workers_by_age ON kernel_workers (last_seen_at);

-- family: agent or team.
CREATE TABLE kernel_definitions (
  scope TEXT COLLATE "C" NOT NULL,
  family TEXT NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  version TEXT COLLATE "C" NOT NULL,
  digest TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (scope, family, id, version)
);

CREATE TABLE kernel_agent_deployments (
  scope TEXT COLLATE "C" NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  revision BIGINT NOT NULL,
  status TEXT NOT NULL,
  definition_id TEXT COLLATE "C" NOT NULL,
  active_version TEXT COLLATE "C" NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (scope, id)
);

CREATE TABLE kernel_team_deployments (
  scope TEXT COLLATE "C" NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  revision BIGINT NOT NULL,
  status TEXT NOT NULL,
  definition_id TEXT COLLATE "C" NOT NULL,
  active_version TEXT COLLATE "C" NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (scope, id)
);

-- A version lies upon the one that a rollback goes to: below is the deployment_revision of its row; none for the first.
CREATE TABLE kernel_activations (
  scope TEXT COLLATE "C" NOT NULL,
  family TEXT NOT NULL,
  deployment_id TEXT COLLATE "C" NOT NULL,
  deployment_revision BIGINT NOT NULL,
  to_version TEXT NOT NULL,
  below BIGINT,
  body TEXT NOT NULL,
  PRIMARY KEY (scope, family, deployment_id, deployment_revision)
);

CREATE TABLE kernel_amendments (
  scope TEXT COLLATE "C" NOT NULL,
  family TEXT NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  revision BIGINT NOT NULL,
  deployment_id TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (scope, id)
);
CREATE INDEX kernel_amendments_by_deployment ON kernel_amendments (scope, family, deployment_id, created_at, id);

CREATE TABLE kernel_compilations (
  scope TEXT COLLATE "C" NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  deployment_id TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (scope, id)
);
CREATE INDEX kernel_compilations_by_deployment ON kernel_compilations (scope, deployment_id, created_at, id);

-- Skills in the hands of deployments. family: agent or team.
CREATE TABLE kernel_bindings (
  scope TEXT COLLATE "C" NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  revision BIGINT NOT NULL,
  family TEXT NOT NULL,
  deployment_id TEXT COLLATE "C" NOT NULL,
  disabled INTEGER NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (scope, id)
);
CREATE INDEX kernel_bindings_by_deployment ON kernel_bindings (scope, family, deployment_id, id);
