// Package site is the site of the publish example: an HTTP service that keeps pages, and its client. A page is written
// under a key of the caller's: a second write under it is a no-op, and what is there under a key can be asked.
//
//	PUT    /pages/{key}   an Article: 201 with its Page, 200 when it was there already, 409 for another article
//	GET    /pages/{key}   200 with the Page, 404 when there is none
//	DELETE /pages/{key}   204, also when it is withdrawn already
//	GET    /pages         the pages that are to be seen, oldest first
//
// Pages are kept in memory: the site forgets them when its process ends.
package site

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
)

// Article is what a page shows.
type Article struct {
	Title string `json:"title"`
	Body  string `json:"body"`
}

// Page is an article on the site.
type Page struct {
	// ID follows from the key: a key has one page.
	ID    string `json:"id"`
	Key   string `json:"key"`
	Title string `json:"title"`
}

const (
	// maxArticle bounds an article as JSON, in bytes.
	maxArticle = 1 << 20
	// maxKey bounds a key in bytes.
	maxKey = 255
)

// Server is the site. It is safe for concurrent use.
type Server struct {
	mux *http.ServeMux

	mu    sync.Mutex
	pages []kept // oldest first
}

type kept struct {
	page      Page
	article   Article
	withdrawn bool
}

// NewServer returns a site without pages.
func NewServer() *Server {
	s := &Server{mux: http.NewServeMux()}
	s.mux.HandleFunc("PUT /pages/{key}", s.put)
	s.mux.HandleFunc("GET /pages/{key}", s.get)
	s.mux.HandleFunc("DELETE /pages/{key}", s.withdraw)
	s.mux.HandleFunc("GET /pages", s.list)
	return s
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

func (s *Server) put(w http.ResponseWriter, r *http.Request) {
	key := r.PathValue("key")
	var a Article
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxArticle)).Decode(&a)
	switch {
	case len(key) > maxKey:
		refuse(w, http.StatusBadRequest, "the key is longer than 255 bytes")
	case err != nil:
		refuse(w, http.StatusBadRequest, "no article: "+err.Error())
	case a.Title == "":
		refuse(w, http.StatusUnprocessableEntity, "the article has no title")
	default:
		s.write(w, key, a)
	}
}

func (s *Server) write(w http.ResponseWriter, key string, a Article) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.find(key); k != nil {
		switch {
		case k.withdrawn:
			refuse(w, http.StatusGone, "the page of this key was withdrawn")
		case k.article != a:
			refuse(w, http.StatusConflict, "another article was published under this key")
		default:
			reply(w, http.StatusOK, k.page)
		}
		return
	}
	sum := sha256.Sum256([]byte(key))
	page := Page{ID: "p-" + hex.EncodeToString(sum[:4]), Key: key, Title: a.Title}
	s.pages = append(s.pages, kept{page: page, article: a})
	reply(w, http.StatusCreated, page)
}

func (s *Server) get(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.find(r.PathValue("key")); k != nil && !k.withdrawn {
		reply(w, http.StatusOK, k.page)
		return
	}
	refuse(w, http.StatusNotFound, noPage)
}

// noPage tells the site's own 404 from that of something else at its address.
const noPage = "no page under this key"

func (s *Server) withdraw(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.find(r.PathValue("key")); k != nil {
		k.withdrawn = true
	}
	w.WriteHeader(http.StatusNoContent)
}

func (s *Server) list(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := []Page{}
	for _, k := range s.pages {
		if !k.withdrawn {
			seen = append(seen, k.page)
		}
	}
	reply(w, http.StatusOK, seen)
}

// find returns what is kept under a key, nil for nothing; s.mu is held.
func (s *Server) find(key string) *kept {
	i := slices.IndexFunc(s.pages, func(k kept) bool { return k.page.Key == key })
	if i < 0 {
		return nil
	}
	return &s.pages[i]
}

type problem struct {
	Error string `json:"error"`
}

func refuse(w http.ResponseWriter, status int, message string) { reply(w, status, problem{message}) }

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the caller has gone: there is nobody to tell
}

// read returns a body of at most maxArticle bytes.
func read(body io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(body, maxArticle+1))
	if err == nil && len(data) > maxArticle {
		err = errors.New("the answer is longer than 1 MiB")
	}
	return data, err
}
