// Package memory keeps and runs threads in this process. The rules are those of other packages: graphadapter/pregel for
// supersteps, graphadapter/life for what a run owes to people and to time. This package only carries.
package memory
