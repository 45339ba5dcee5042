// Package serving registers what a worker does: the workflows of graphs and leaders, and the activities of their nodes, with the
// replays by which activities read the past of a run.
package serving
