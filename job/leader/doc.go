// Package leader carries out jobs with experts: an [Expert] is a graph with a description by which planners choose it, and a
// [Leader] is a planner with its experts. A worker serves leaders, a superstep.Client submits jobs to them and steers them, and
// [Leader.Invoke] carries one out in this process. What a job is, and every rule about it, is in package job.
package leader
