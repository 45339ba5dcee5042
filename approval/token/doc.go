// Package token signs and verifies what an approver answers with: a short-lived JWT (RFC 7519), signed with Ed25519
// (RFC 8037), that is bound to one thread, question, action and approver.
//
// Who answers holds a [Signer], one private key. Workers hold a [Keyring] of public keys only. A key is rotated by adding
// the new public key to every worker, then signing with the new one, then giving the old one a Retired-At header an hour
// (approval.MaxTokenLife) later or more, or at once when it has leaked.
package token
