# Checks a release in parallel, decides, and always cleans up.
#   mem run docs/examples/release.hcl --input version=1.4.0 --input 'targets=["eu", "us"]'
workflow "release" {
  description = "A release, on paper"
  concurrency = 4

  input "version" {
    type    = string
    default = "1.4.0"
  }

  input "targets" {
    type    = set(string)
    default = ["eu", "us"]
  }

  input "stage" {
    type    = string
    enum    = ["test", "live"]
    default = "test"
  }

  locals {
    parts    = split(".", input.version)
    is_major = local.parts[1] == "0" && local.parts[2] == "0"
  }

  node manual start {}

  # the checks run at once; with failFast the first failure cancels the others
  node split checks {}

  node transform tests {
    template = { passed = true }
  }

  node delay soak {
    milliseconds = 20
  }

  node join checked {}

  node if careful {
    condition = local.is_major && input.stage == "live"
  }

  node set approve {
    description = "A major release waits for a person"
    name        = "approved"
    value       = false
  }

  node set accept {
    name  = "approved"
    value = true
  }

  node join decided {}

  # what is not approved rolls out to nobody
  node loop roll_out {
    items       = var.approved ? input.targets : []
    itemVar     = "target"
    onItemError = "continue"
  }

  node transform deploy {
    template = "${input.version} to ${var.target}"
  }

  node join deployed {}

  node transform clean_up {
    template = { rolled_out_to = nodes.deployed.output.results }
  }

  edge start checks {}
  edge checks tests {}
  edge checks soak {}
  edge tests checked {}
  edge soak checked {}
  edge checked careful {}
  edge careful approve { condition = "then" }
  edge careful accept { condition = "else" }
  edge approve decided {}
  edge accept decided {}
  edge decided roll_out {}
  edge roll_out deploy {}
  edge deploy deployed {}
  edge deployed clean_up { on = "always" }
}
