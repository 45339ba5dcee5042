// Package storage keeps large values of threads outside of the server's histories. What stands in a history is a reference of some
// 300 bytes with a digest; the values lie in a directory or in a bucket that workers and clients share: [Storage].
//
// A value is stored under the SHA-256 of its content, so what is stored again takes no room, and what is read is what was
// stored. A value above 64 KiB is cut into pieces at places that its content decides. So two states of a thread of which one has
// grown at its end have all pieces but a few in common: what a conversation takes grows with what is said, however often the whole of it
// is handed on. A value that goes on from one of the same thread that this process has in memory is stored as what is new in it, told by
// that one: a turn stores some times what was said, in one object. With a codec in the data converter the codec comes first: what lies in the storage is encoded as what lies in
// histories is. One that encrypts with a random nonce leaves nothing that two values have in common; package secret leaves equal pieces equal.
package storage
