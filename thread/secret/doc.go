// Package secret encrypts what is stored of threads: every payload that clients and workers send to the server, and with it what lies
// in a storage, is sealed with AES-256-GCM before it leaves the process. [Keys] are read from a file or from a command's output, and
// are read again while processes run: the newest key writes, all keys read.
//
// Give [Keys.Converter] to ClientConfig.DataConverter and WorkerConfig.DataConverter, or --keys to the command line.
//
// # What a sealed payload looks like
//
// Its metadata name the encoding, [Encoding], and the id of the key. Everything else, the metadata of the payload included, is inside:
//
//	1, nonce (24 bytes), ciphertext, tag (16)               up to 64 KiB
//	2, { length (4), nonce (24), ciphertext, tag (16) } …   above: one for each piece, the last one is a table of the pieces
//
// The cipher is XAES-256-GCM (c2sp.org/XAES-256-GCM): AES-256-GCM under a key that is derived from the first half of the nonce. So
// nonces are long enough to be random for any number of payloads under one key. Each use has a key of its own, derived from the key
// in the file by HKDF-SHA-256. Encoding, key id and the part's role are authenticated with each part.
//
// # Equal pieces
//
// Payloads up to 64 KiB have random nonces: equal ones look different. A larger payload is cut where its content says so, at
// places that depend on the key, and the nonce of a piece is HMAC-SHA-256 of what is sealed, under a key of its own. So equal
// pieces are sealed equally, and two states of a conversation have all but their ends in common in a storage. Who reads the storage,
// and has no key, sees that two values share pieces of 8 KiB or more, and nothing of what is in them; who may also choose
// what is stored can test whether such a whole piece is stored already.
//
// Parts are compressed before they are sealed, so their lengths tell how well they compress.
package secret
