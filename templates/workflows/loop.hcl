# Does something for every item and gathers the results. Run it with: mem run FILE --input 'names=["a", "b"]'
workflow "NAME" {
  description = "Does something for every item"

  input "names" {
    type    = list(string)
    default = ["ada", "grace"]
  }

  node manual start {}

  node loop each {
    items = input.names
  }

  node transform greet {
    template = {
      index = loop.index
      text  = "Hello ${title(loop.item)}"
    }
  }

  node join all {}

  node transform summary {
    template = {
      count = prev.count
      texts = prev.results[*].text
    }
  }

  edge start each {}
  edge each greet {}
  edge greet all {}
  edge all summary {}
}
