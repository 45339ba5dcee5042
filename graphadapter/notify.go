package graphadapter

// NotifyActivity is the type of the activity that tells a worker's notifier something: an approval.Notice gives nothing. It
// fails until every target has the notice, or will not have it.
const NotifyActivity = "superstep.notify"
